//! Tests: failures around tokens (O01–O03, O05, O06, O17–O20, T43, T47).

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use wharf_net::{AuthRecovery, Authorizer, HeaderMap, Method, RequestCredentials, StatusCode};

use super::script::{AccountBench, ISSUER, LIFE, SERVER, START, carried, kept, key, refusal, refused_with, tokens};
use crate::discovery::EndpointSource;
use crate::error::TokenError;
use crate::token::TokenSet;
use crate::vault::{StoredLogin, Vault};

const RENEW: &str = "renew r0 at https://as.example/token";

#[tokio::test]
async fn o01_tokens_are_refreshed_30s_before_expiry() {
    for (passed, expected) in [(0, "a0"), (LIFE - 30_001, "a0"), (LIFE - 30_000, "a1"), (LIFE + 300_000, "a1")] {
        let bench = AccountBench::logged_in();
        bench.pass(passed);
        assert_eq!(bench.carried().await.unwrap().unwrap().0, expected, "{passed}");
        assert_eq!(bench.tokens().0, expected, "{passed}");
    }
}

#[tokio::test]
async fn o01_rejected_token_is_refreshed_once() {
    let bench = AccountBench::logged_in();
    let (_, serial) = bench.carried().await.unwrap().unwrap();
    bench.refused(Some(serial)).await.unwrap();
    // Other requests with the old token switch to the new one.
    bench.refused(Some(serial)).await.unwrap();
    bench.refused(None).await.unwrap();
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
    assert_eq!(bench.script.seen(), [RENEW]);
}

#[tokio::test]
async fn o02_t47_tokens_refreshed_by_another_process_are_adopted() {
    let bench = AccountBench::logged_in();
    let other = bench.another();
    for account in [&bench.account, &other] {
        assert_eq!(carried(account).await.unwrap().unwrap().0, "a0");
    }
    bench.pass(LIFE);
    assert_eq!(carried(&other).await.unwrap().unwrap().0, "a1");
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
    let (_, serial) = carried(&other).await.unwrap().unwrap();
    other.on_response(StatusCode::OK, &HeaderMap::new());
    other.on_rejection(refusal(401, "Bearer", Some(serial))).await.unwrap();
    let (_, serial) = bench.carried().await.unwrap().unwrap();
    bench.refused(Some(serial)).await.unwrap();
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a2");
    assert_eq!(bench.script.seen(), [RENEW, "renew r1 at https://as.example/token"]);
}

#[tokio::test]
async fn o02_expired_tokens_of_another_process_are_refreshed() {
    let bench = AccountBench::logged_in();
    bench.carried().await.unwrap();
    let theirs = StoredLogin { tokens: Some(tokens("their-access", Some("their-refresh"))), ..kept("", None) };
    bench.vault.save(&key(), &theirs).unwrap();
    bench.pass(LIFE);
    bench.carried().await.unwrap();
    assert_eq!(bench.script.seen(), ["renew their-refresh at https://as.example/token"]);
}

#[tokio::test(start_paused = true)]
async fn o03_only_invalid_grant_deletes_tokens() {
    let unclear = || TokenError::Unclear("500".to_owned());
    for (answer, remedy, are_kept) in [
        (refused_with("invalid_grant"), AuthRecovery::Login, false),
        (refused_with("invalid_client"), AuthRecovery::Login, true),
        (refused_with("unauthorized_client"), AuthRecovery::Login, true),
        (refused_with("invalid_request"), AuthRecovery::Waiting, true),
        (refused_with("temporarily_unavailable"), AuthRecovery::Waiting, true),
        (unclear(), AuthRecovery::Waiting, true),
    ] {
        let bench = AccountBench::logged_in();
        bench.script.answer(Err(answer.clone()));
        bench.pass(LIFE);
        assert_eq!(bench.carried().await.unwrap_err().remedy, remedy, "{answer:?}");
        let kept = bench.kept().unwrap();
        assert_eq!(kept.tokens.is_some(), are_kept, "{answer:?}");
        assert_eq!((kept.issuer.as_str(), kept.client.id.as_str()), (ISSUER, "c"), "{answer:?}");
        let said = if let TokenError::Refused { code, .. } = &answer { code.clone() } else { answer.to_string() };
        assert!(kept.last_error.is_some_and(|error| error.contains(&said)), "{answer:?}");
        // Not immediately again, regardless of the error.
        let times = bench.script.seen().len();
        let _ = bench.carried().await;
        assert_eq!(bench.script.seen().len(), times, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn o03_failed_refresh_is_retried_with_exponential_backoff() {
    let bench = AccountBench::logged_in();
    bench.pass(LIFE);
    for (round, pause) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
        bench.script.answer(Err(TokenError::Unclear("503".to_owned())));
        assert_eq!(bench.carried().await.unwrap_err().remedy, AuthRecovery::Waiting);
        assert_eq!(bench.script.seen().len(), round + 1);
        tokio::time::advance(Duration::from_millis(pause * 1000 - 1)).await;
        assert_eq!(bench.carried().await.unwrap_err().remedy, AuthRecovery::Waiting);
        assert_eq!(bench.script.seen().len(), round + 1, "within {pause} s");
        tokio::time::advance(Duration::from_millis(2)).await;
    }
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
}

#[tokio::test]
async fn o03_unexpired_tokens_are_used_after_transient_failure() {
    let bench = AccountBench::logged_in();
    bench.script.answer(Err(TokenError::Unclear("503".to_owned())));
    bench.pass(LIFE - 10_000);
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a0");
    bench.pass(10_000);
    assert_eq!(bench.carried().await.unwrap_err().remedy, AuthRecovery::Waiting);
    assert_eq!(bench.script.seen(), [RENEW]);
}

#[tokio::test]
async fn t47_invalid_grant_does_not_delete_newer_tokens() {
    let bench = AccountBench::logged_in();
    bench.script.close();
    bench.script.answer(Err(refused_with("invalid_grant")));
    bench.pass(LIFE);
    let account = bench.account.clone();
    let waiting = tokio::spawn(async move { carried(&account).await });
    bench.script.await_seen(RENEW).await;
    let theirs = TokenSet { expires_at: Some(START + 3 * LIFE), ..tokens("their-access", Some("their-refresh")) };
    bench.vault.save(&key(), &StoredLogin { tokens: Some(theirs), ..kept("", None) }).unwrap();
    bench.script.open(1);
    assert_eq!(waiting.await.unwrap().unwrap().unwrap().0, "their-access");
    assert_eq!(bench.tokens().0, "their-access");
}

#[tokio::test]
async fn o05_refreshed_tokens_are_stored_after_caller_cancels() {
    let bench = AccountBench::logged_in();
    bench.script.close();
    bench.pass(LIFE);
    let account = bench.account.clone();
    let asking = tokio::spawn(async move { carried(&account).await });
    bench.script.await_seen(RENEW).await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    bench.script.open(1);
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
    assert_eq!(bench.tokens(), ("a1".to_owned(), Some("r1".to_owned())));
    assert_eq!(bench.script.seen(), [RENEW]);
}

#[tokio::test]
async fn o05_unstorable_tokens_are_used_instead_of_stored_ones() {
    let bench = AccountBench::logged_in();
    bench.script.close();
    bench.pass(LIFE);
    let account = bench.account.clone();
    let asking = tokio::spawn(async move { carried(&account).await });
    bench.script.await_seen(RENEW).await;
    // A directory at the path of the temporary file.
    let in_the_way = bench.folder.path().join(".mcp-auth.json.wharf-tmp");
    fs::create_dir_all(in_the_way.join("full")).unwrap();
    bench.script.open(2);
    assert_eq!(asking.await.unwrap().unwrap().unwrap().0, "a1");
    assert_eq!(bench.tokens().0, "a0");
    fs::remove_dir_all(in_the_way).unwrap();
    bench.pass(LIFE);
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a2");
    assert_eq!(bench.tokens().0, "a2");
    assert_eq!(bench.script.seen(), [RENEW, "renew r1 at https://as.example/token"]);
}

#[tokio::test(start_paused = true)]
async fn o06_refresh_waits_for_the_lock_of_another_process() {
    let bench = AccountBench::logged_in();
    bench.pass(LIFE);
    let held = bench.vault.lock(&key(), Duration::ZERO).unwrap();
    let account = bench.account.clone();
    let waiting = tokio::spawn(async move { carried(&account).await });
    while !waiting.is_finished() {
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    assert_eq!(waiting.await.unwrap().unwrap_err().remedy, AuthRecovery::Waiting);
    while bench.account.inner.renewals.is_running() {
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    assert_eq!(bench.script.seen(), [""; 0]);
    assert_eq!(bench.carried().await.unwrap_err().remedy, AuthRecovery::Waiting);
    drop(held);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
}

#[tokio::test]
async fn o17_tokens_without_expiry_are_valid_until_rejected() {
    let bench = AccountBench::new(None);
    let endless = TokenSet { expires_at: None, ..tokens("endless", Some("r0")) };
    bench.vault.save(&key(), &StoredLogin { tokens: Some(endless), ..kept("", None) }).unwrap();
    bench.pass(1_000 * LIFE);
    let (token, serial) = bench.carried().await.unwrap().unwrap();
    assert_eq!((token.as_str(), bench.script.seen().len()), ("endless", 0));
    bench.refused(Some(serial)).await.unwrap();
    assert_eq!(bench.script.seen(), [RENEW]);
    let huge = TokenSet { expires_at: Some(u64::MAX), ..tokens("huge", None) };
    bench.vault.save(&key(), &StoredLogin { tokens: Some(huge), ..kept("", None) }).unwrap();
    assert_eq!(carried(&bench.another()).await.unwrap().unwrap().0, "huge");
}

#[tokio::test(start_paused = true)]
async fn o18_hundred_callers_share_one_request_and_time_out() {
    let bench = AccountBench::logged_in();
    bench.script.close();
    bench.pass(LIFE);
    let began = tokio::time::Instant::now();
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let account = bench.account.clone();
            tokio::spawn(async move { carried(&account).await })
        })
        .collect();
    for caller in callers {
        assert_eq!(caller.await.unwrap().unwrap_err().remedy, AuthRecovery::Waiting);
    }
    let waited = began.elapsed();
    assert!((Duration::from_secs(30)..Duration::from_secs(32)).contains(&waited), "{waited:?}");
    bench.script.open(1);
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
    assert_eq!(bench.script.seen(), [RENEW]);
}

#[tokio::test]
async fn o19_logout_wins_over_refresh_in_flight() {
    let bench = AccountBench::logged_in();
    bench.script.close();
    bench.pass(LIFE);
    let account = bench.account.clone();
    let renewing = tokio::spawn(async move { carried(&account).await });
    bench.script.await_seen(RENEW).await;
    assert!(bench.account.log_out().await.unwrap().was_kept);
    bench.script.open(1);
    assert_eq!(renewing.await.unwrap().unwrap_err().remedy, AuthRecovery::Login);
    assert_eq!(bench.script.seen(), [RENEW, "revoke a0", "revoke a1"]);
    assert_eq!(bench.kept(), None);
    assert_eq!(bench.carried().await.unwrap(), None);
}

#[tokio::test]
async fn o19_logout_in_another_process_wins_over_refresh() {
    let bench = AccountBench::logged_in();
    bench.script.close();
    bench.pass(LIFE);
    let account = bench.account.clone();
    let renewing = tokio::spawn(async move { carried(&account).await });
    bench.script.await_seen(RENEW).await;
    let other = bench.another();
    let leaving = tokio::spawn(async move { other.log_out().await });
    bench.script.await_seen("revoke a0").await;
    bench.script.open(1);
    assert_eq!(renewing.await.unwrap().unwrap_err().remedy, AuthRecovery::Login);
    assert!(leaving.await.unwrap().unwrap().was_kept);
    assert_eq!(bench.script.seen(), [RENEW, "revoke a0", "revoke a1"]);
    assert_eq!(bench.kept(), None);
}

#[tokio::test]
async fn o20_clock_jump_costs_only_one_refresh() {
    let day = 86_400_000;
    let bench = AccountBench::logged_in();
    bench.carried().await.unwrap();
    bench.pass(day);
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
    bench.now.store(START - day, Ordering::Relaxed);
    let (token, serial) = bench.carried().await.unwrap().unwrap();
    assert_eq!(token, "a1");
    bench.account.on_response(StatusCode::OK, &HeaderMap::new());
    bench.refused(Some(serial)).await.unwrap();
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a2");
}

#[tokio::test]
async fn t43_tokens_are_sent_only_to_their_https_origin() {
    let bench = AccountBench::logged_in();
    bench.carried().await.unwrap();
    for (url, is_shown) in [
        (SERVER, true),
        ("https://mcp.example/else?where", true),
        ("https://mcp.example:8443/mcp", false),
        ("http://mcp.example/mcp", false),
        ("https://mcp.example.evil/mcp", false),
        ("https://evil/https://mcp.example/mcp", false),
        ("https://mcp.example@evil/mcp", false),
    ] {
        let credentials = bench.account.credentials(&Method::GET, &url.parse().unwrap());
        assert_eq!(matches!(credentials, RequestCredentials::Ready(_)), is_shown, "{url}");
        assert_eq!(matches!(credentials, RequestCredentials::None), !is_shown, "{url}");
    }
}

#[tokio::test]
async fn t43_tokens_for_another_url_are_not_sent() {
    let bench = AccountBench::new(None);
    for url in ["https://other.example/mcp", "http://mcp.example/mcp", "nonsense"] {
        bench.vault.save(&key(), &StoredLogin { url: url.to_owned(), ..kept("a0", Some("r0")) }).unwrap();
        let account = bench.another();
        assert_eq!(carried(&account).await.unwrap(), None, "{url}");
        let refused = account.on_rejection(refusal(401, "Bearer", None)).await;
        assert_eq!(refused.unwrap_err().remedy, AuthRecovery::Login, "{url}");
    }
    for (url, resource) in [
        ("https://mcp.example/mcp", Some("https://mcp.example/other-tenant")),
        ("https://mcp.example/mcp", Some("https://mcp.example/mcp/below")),
        ("https://mcp.example/other-tenant", None),
    ] {
        let resource = resource.map(str::to_owned);
        bench.vault.save(&key(), &StoredLogin { url: url.to_owned(), resource, ..kept("a0", Some("r0")) }).unwrap();
        assert_eq!(carried(&bench.another()).await.unwrap(), None, "{url}");
    }
    assert_eq!(bench.script.seen(), [""; 0]);
}

#[tokio::test]
async fn o13_damaged_file_needs_login_only_on_rejection() {
    let bench = AccountBench::logged_in();
    fs::write(bench.folder.path().join("mcp-auth.json"), "{").unwrap();
    assert_eq!(bench.carried().await.unwrap(), None);
    let error = bench.refused(None).await.unwrap_err();
    assert_eq!(error.remedy, AuthRecovery::Login);
    assert!(error.reason.contains("damaged"), "{error}");
}

#[tokio::test]
async fn server_without_auth_causes_no_reads_or_requests() {
    let bench = AccountBench::new(None);
    for _ in 0..3 {
        assert_eq!(bench.carried().await.unwrap(), None);
    }
    assert!(matches!(bench.account.credentials(&Method::GET, &SERVER.parse().unwrap()), RequestCredentials::None));
    assert_eq!((bench.script.seen.borrow().len(), fs::read_dir(bench.folder.path()).unwrap().count()), (0, 0));
}

fn flat() -> StoredLogin {
    StoredLogin { issuer: String::new(), url: String::new(), token_endpoint: String::new(), ..kept("a0", Some("r0")) }
}

#[tokio::test]
async fn flat_login_is_refreshed_at_the_discovered_endpoint() {
    let bench = AccountBench::new(None).with(|options| options.takes_flat = true);
    bench.vault.save(&key(), &flat()).unwrap();
    bench.pass(LIFE);
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
    let kept = bench.kept().unwrap();
    assert_eq!((kept.issuer.as_str(), kept.url.as_str()), (ISSUER, SERVER));
    assert_eq!(bench.script.seen(), [RENEW]);
}

#[tokio::test]
async fn t45_refresh_token_is_not_sent_to_a_presumed_issuer() {
    let elsewhere = StoredLogin { issuer: "https://other.example".to_owned(), ..flat() };
    let unnamed = StoredLogin { token_endpoint: String::new(), ..kept("a0", Some("r0")) };
    for (kept, named) in
        [(flat(), EndpointSource::Presumed), (unnamed, EndpointSource::Presumed), (elsewhere, EndpointSource::Metadata)]
    {
        let bench = AccountBench::new(None).with(|options| options.takes_flat = true);
        bench.script.find(Some(Ok(named)));
        bench.vault.save(&key(), &kept).unwrap();
        bench.pass(LIFE);
        assert_eq!(bench.carried().await.unwrap_err().remedy, AuthRecovery::Login, "{kept:?}");
        assert_eq!(bench.script.seen(), [""; 0], "{kept:?}");
    }
}

#[tokio::test]
async fn t43_flat_login_is_used_only_for_user_entries() {
    let bench = AccountBench::new(None);
    bench.vault.save(&key(), &flat()).unwrap();
    assert_eq!(bench.carried().await.unwrap(), None);
    assert_eq!(bench.refused(None).await.unwrap_err().remedy, AuthRecovery::Login);
    let own = bench.with(|options| options.takes_flat = true);
    assert_eq!(own.carried().await.unwrap().unwrap().0, "a0");
}

#[tokio::test]
async fn o01_short_lived_tokens_are_refreshed_at_half_life() {
    for (passed, expected) in [(0, "a0"), (9_999, "a0"), (10_000, "a1"), (60_000, "a1")] {
        let bench = AccountBench::new(None);
        let short = TokenSet { expires_at: Some(START + 20_000), ..tokens("a0", Some("r0")) };
        bench.vault.save(&key(), &StoredLogin { tokens: Some(short), ..kept("", None) }).unwrap();
        bench.pass(passed);
        assert_eq!(bench.carried().await.unwrap().unwrap().0, expected, "{passed}");
    }
}

#[tokio::test]
async fn o02_expired_login_of_another_process_is_refreshed() {
    let bench = AccountBench::new(None);
    assert_eq!(bench.carried().await.unwrap(), None);
    bench.vault.save(&key(), &kept("a0", Some("r0"))).unwrap();
    bench.pass(LIFE);
    bench.refused(None).await.unwrap();
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
    assert_eq!(bench.script.seen(), [RENEW]);
}
