//! Tests: transient failures are not permanent, and demanded scopes are not forgotten (O03, O14, T48).

use std::sync::Arc;
use std::time::Duration;

use wharf_net::{AuthRecovery, AuthRejection, Authorizer, HeaderMap, StatusCode};

use super::script::{AccountBench, ConsentingBrowser, LIFE, carried, kept, key, refusal};
use crate::browser::VisitError;
use crate::discovery::EndpointSource;
use crate::error::LoginError;
use crate::settings::TokenGrant;
use crate::vault::Vault;

const RENEW: &str = "renew r0 at https://as.example/token";
const LOGIN: &str = "log in at https://as.example as same client for read";

fn attended() -> AccountBench {
    let bench = AccountBench::new(Some(Arc::new(ConsentingBrowser)));
    bench.vault.save(&key(), &kept("a0", Some("r0"))).unwrap();
    bench
}

/// An account with tokens from a grant without user interaction.
fn unattended() -> AccountBench {
    let bench = AccountBench::new(None).with(|options| options.settings.grant = TokenGrant::ClientSecret);
    bench.vault.save(&key(), &kept("a0", None)).unwrap();
    bench
}

#[tokio::test(start_paused = true)]
async fn o14_failed_discovery_does_not_mean_a_moved_issuer() {
    let nowhere = || Some(Err(LoginError::Discovery("404".to_owned())));
    for found in [Some(Ok(EndpointSource::Presumed)), nowhere(), None] {
        let bench = attended();
        let (_, serial) = bench.carried().await.unwrap().unwrap();
        bench.script.move_to("https://mcp.example");
        bench.script.find(found.clone());
        let began = tokio::time::Instant::now();
        bench.refused(Some(serial)).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(30), "{found:?}: {:?}", began.elapsed());
        assert_eq!(bench.script.seen(), [RENEW], "{found:?}");
    }
}

#[tokio::test]
async fn t45_wrong_resource_metadata_prevents_refresh() {
    let wrong = LoginError::WrongResource { found: "a".to_owned(), dialled: "b".to_owned() };
    for error in [wrong, LoginError::Unsafe("http".to_owned())] {
        let bench = attended();
        let (_, serial) = bench.carried().await.unwrap().unwrap();
        bench.script.find(Some(Err(error)));
        assert_eq!(bench.refused(Some(serial)).await.unwrap_err().remedy, AuthRecovery::Reading);
        assert_eq!(bench.script.seen(), [""; 0]);
    }
}

#[tokio::test]
async fn o01_second_rejection_of_the_same_token_is_not_counted() {
    let bench = attended();
    let (_, serial) = bench.carried().await.unwrap().unwrap();
    bench.refused(Some(serial)).await.unwrap();
    let (token, serial) = bench.carried().await.unwrap().unwrap();
    assert_eq!(token, "a1");
    for _ in 0..3 {
        bench.script.fail(VisitError::Declined.into());
        assert_eq!(bench.refused(Some(serial)).await.unwrap_err().remedy, AuthRecovery::Login);
    }
    assert_eq!(bench.script.seen(), [RENEW, LOGIN, LOGIN, LOGIN]);
}

#[tokio::test]
async fn o01_unattended_rejections_request_a_login() {
    let bench = AccountBench::logged_in();
    for _ in 0..3 {
        bench.pass(LIFE);
        let (_, serial) = bench.carried().await.unwrap().unwrap();
        assert_eq!(bench.refused(Some(serial)).await.unwrap_err().remedy, AuthRecovery::Login);
    }
}

#[tokio::test]
async fn o01_bare_401_costs_one_refresh_and_one_login_at_most() {
    let bench = attended();
    let bare = |serial| AuthRejection { status: 401, headers: HeaderMap::new(), serial };
    for round in 1.. {
        let (_, serial) = bench.carried().await.unwrap().unwrap();
        bench.account.on_response(StatusCode::UNAUTHORIZED, &HeaderMap::new());
        if bench.account.on_rejection(bare(Some(serial))).await.is_err() {
            break;
        }
        assert!(round < 10);
    }
    assert_eq!(bench.script.seen(), [RENEW, LOGIN]);
}

#[tokio::test(start_paused = true)]
async fn failed_client_credentials_request_is_backed_off() {
    let bench = unattended();
    bench.pass(LIFE - 10_000);
    bench.script.fail(LoginError::Unreachable("nobody answers".to_owned()));
    let (_, serial) = bench.carried().await.unwrap().unwrap();
    for _ in 0..3 {
        assert_eq!(bench.carried().await.unwrap().unwrap().0, "a0", "it has not ended");
    }
    assert_eq!(bench.script.seen(), [LOGIN]);
    bench.pass(10_000);
    assert_eq!(bench.carried().await.unwrap_err().remedy, AuthRecovery::Waiting);
    assert_eq!(bench.refused(Some(serial)).await.unwrap_err().remedy, AuthRecovery::Waiting);
    assert_eq!(bench.script.seen(), [LOGIN]);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
}

#[tokio::test(start_paused = true)]
async fn client_credentials_request_times_out_after_30s() {
    let bench = unattended();
    bench.script.close();
    bench.pass(LIFE);
    let began = tokio::time::Instant::now();
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let account = bench.account.clone();
            tokio::spawn(async move { carried(&account).await })
        })
        .collect();
    for caller in callers {
        assert_eq!(caller.await.unwrap().unwrap_err().remedy, AuthRecovery::Waiting);
    }
    assert!(began.elapsed() <= Duration::from_secs(31), "{:?}", began.elapsed());
    assert_eq!(bench.script.seen(), [LOGIN]);
    bench.script.open(1);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
}

#[tokio::test]
async fn t48_login_requests_all_demanded_scopes_once() {
    let bench = AccountBench::logged_in();
    let (_, serial) = bench.carried().await.unwrap().unwrap();
    for (challenge, shown) in [
        (r#"Bearer error="insufficient_scope", scope="write""#, "read write"),
        (r#"Bearer error="insufficient_scope", scope="admin""#, "read write admin"),
    ] {
        let refused = bench.account.on_rejection(refusal(403, challenge, Some(serial))).await;
        assert_eq!(refused.unwrap_err().remedy, AuthRecovery::Scope(shown.to_owned()));
    }
    bench.account.log_in(Arc::new(ConsentingBrowser)).await.unwrap();
    bench.account.log_in(Arc::new(ConsentingBrowser)).await.unwrap();
    let login = |scope: &str| format!("log in at https://as.example as same client for {scope}");
    assert_eq!(bench.script.seen(), [login("read write admin"), login("-")]);
}

#[tokio::test]
async fn challenge_is_used_by_the_next_login_only() {
    let bench = AccountBench::new(None);
    let challenge = r#"Bearer resource_metadata="https://mcp.example/about", scope="read""#;
    bench.account.on_rejection(refusal(401, challenge, None)).await.unwrap_err();
    bench.account.log_in(Arc::new(ConsentingBrowser)).await.unwrap();
    bench.account.log_in(Arc::new(ConsentingBrowser)).await.unwrap();
    let said = bench.script.challenges.lock().unwrap().clone();
    let first = said[0].as_ref().unwrap();
    assert_eq!(first.resource_metadata.as_deref(), Some("https://mcp.example/about"));
    assert_eq!((first.scope.as_deref(), &said[1]), (Some("read"), &None));
}

#[tokio::test]
async fn t48_401_refresh_does_not_wait_for_a_step_up_login() {
    let bench = attended();
    let (_, serial) = bench.carried().await.unwrap().unwrap();
    bench.script.close();
    let (more, other) = (bench.account.clone(), bench.account.clone());
    let step_up = refusal(403, r#"Bearer error="insufficient_scope", scope="write""#, Some(serial));
    let agreeing = tokio::spawn(async move { more.on_rejection(step_up).await });
    bench.script.await_seen("log in at https://as.example as same client for read write").await;
    let renewing = tokio::spawn(async move { other.on_rejection(refusal(401, "Bearer", Some(serial))).await });
    bench.script.await_seen(RENEW).await;
    bench.script.open(2);
    agreeing.await.unwrap().unwrap();
    renewing.await.unwrap().unwrap();
}
