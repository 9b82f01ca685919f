//! Tests: handling of rejected requests (O01, O14, T45, T48).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use wharf_net::{
    AuthRecovery, AuthRejection, Authorizer, HeaderMap, HeaderValue, Method, RequestCredentials, StatusCode,
};

use super::super::{Account, AccountOptions};
use super::script::{AccountBench, ConsentingBrowser, SERVER, carried, kept, key, refusal, refused_with, tokens};
use crate::dpop::DpopKey;
use crate::token::TokenSet;
use crate::vault::{StoredLogin, Vault};

const STEP_UP: &str = r#"Bearer error="insufficient_scope", scope="write""#;

fn attended() -> AccountBench {
    let bench = AccountBench::new(Some(Arc::new(ConsentingBrowser)));
    bench.vault.save(&key(), &kept("a0", Some("r0"))).unwrap();
    bench
}

#[tokio::test]
async fn o01_repeated_rejections_end_after_refresh_and_login() {
    let bench = attended();
    let mut refusals = 0;
    let error = loop {
        let serial = bench.carried().await.unwrap().map(|(_, serial)| serial);
        refusals += 1;
        assert!(refusals < 10);
        bench.account.on_response(StatusCode::UNAUTHORIZED, &refusal(401, "Bearer", None).headers);
        if let Err(error) = bench.refused(serial).await {
            break error;
        }
    };
    assert_eq!((refusals, error.remedy), (3, AuthRecovery::Reading));
    assert_eq!(bench.script.seen().len(), 2, "{:?}", bench.script.seen());
    let (_, serial) = bench.carried().await.unwrap().unwrap();
    bench.refused(Some(serial)).await.unwrap_err();
    assert_eq!(bench.script.seen().len(), 2);
    // Accepted once, a later rejection counts separately.
    bench.account.on_response(StatusCode::OK, &HeaderMap::new());
    bench.refused(Some(serial)).await.unwrap();
    assert_eq!(bench.script.seen().len(), 3);
}

#[tokio::test]
async fn rejected_refresh_token_starts_a_login() {
    let bench = attended();
    bench.script.answer(Err(refused_with("invalid_grant")));
    let (_, serial) = bench.carried().await.unwrap().unwrap();
    bench.refused(Some(serial)).await.unwrap();
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
    let login = "log in at https://as.example as same client for read";
    assert_eq!(bench.script.seen(), ["renew r0 at https://as.example/token", login]);
}

#[tokio::test]
async fn unattended_rejection_reports_the_recovery() {
    let bench = AccountBench::new(None);
    assert_eq!(bench.refused(None).await.unwrap_err().remedy, AuthRecovery::Login);
    bench.vault.save(&key(), &kept("a0", None)).unwrap();
    bench.refused(None).await.unwrap();
    let (_, serial) = bench.carried().await.unwrap().unwrap();
    assert_eq!(bench.refused(Some(serial)).await.unwrap_err().remedy, AuthRecovery::Login);
    let forbidden = bench.account.on_rejection(refusal(403, "Bearer", Some(serial))).await;
    assert_eq!(forbidden.unwrap_err().remedy, AuthRecovery::Reading);
    let more = bench.account.on_rejection(refusal(403, STEP_UP, Some(serial))).await;
    assert_eq!(more.unwrap_err().remedy, AuthRecovery::Scope("read write".to_owned()));
    assert_eq!(bench.script.seen(), [""; 0]);
}

#[tokio::test]
async fn t45_o14_moved_issuer_sees_no_old_client_or_tokens() {
    let bench = attended();
    let (_, serial) = bench.carried().await.unwrap().unwrap();
    bench.script.move_to("https://new.example");
    bench.refused(Some(serial)).await.unwrap();
    assert_eq!(bench.script.seen(), ["log in at https://new.example as new client for -"]);
    assert_eq!(bench.kept().unwrap().issuer, "https://new.example");
    let old = bench.vault.load_for_issuer(&key(), "https://as.example").unwrap();
    assert_eq!(old, Some(kept("a0", Some("r0"))));
    let without = AccountBench::logged_in();
    let (_, serial) = without.carried().await.unwrap().unwrap();
    without.script.move_to("https://new.example");
    assert_eq!(without.refused(Some(serial)).await.unwrap_err().remedy, AuthRecovery::Login);
    assert_eq!(without.script.seen(), [""; 0]);
}

#[tokio::test]
async fn t45_client_registered_at_new_issuer_is_reused() {
    let bench = attended();
    let there = StoredLogin { issuer: "https://new.example".to_owned(), tokens: None, asked: None, ..kept("", None) };
    bench.vault.save(&key(), &there).unwrap();
    bench.vault.save(&key(), &kept("a0", Some("r0"))).unwrap();
    let (_, serial) = bench.carried().await.unwrap().unwrap();
    bench.script.move_to("https://new.example");
    bench.refused(Some(serial)).await.unwrap();
    assert_eq!(bench.script.seen(), ["log in at https://new.example as same client for -"]);
}

#[tokio::test(start_paused = true)]
async fn t48_step_up_is_requested_at_most_twice_in_ten_minutes() {
    let bench = attended();
    let more = async || {
        let (_, serial) = bench.carried().await.unwrap().unwrap();
        bench.account.on_rejection(refusal(403, STEP_UP, Some(serial))).await
    };
    more().await.unwrap();
    tokio::time::advance(Duration::from_secs(300)).await;
    more().await.unwrap();
    let error = more().await.unwrap_err();
    assert_eq!(error.remedy, AuthRecovery::Reading);
    assert!(error.reason.contains("read write"), "{error}");
    let login = "log in at https://as.example as same client for read write";
    assert_eq!(bench.script.seen(), [login, login]);
    tokio::time::advance(Duration::from_secs(300)).await;
    more().await.unwrap();
    more().await.unwrap_err();
}

#[tokio::test]
async fn t48_rejections_before_the_last_step_up_are_only_retried() {
    let bench = attended();
    let (_, serial) = bench.carried().await.unwrap().unwrap();
    for _ in 0..5 {
        bench.account.on_rejection(refusal(403, STEP_UP, Some(serial))).await.unwrap();
    }
    assert_eq!(bench.script.seen().len(), 1);
}

#[tokio::test]
async fn plain_http_server_gets_no_login() {
    let bench = attended();
    let mut options =
        AccountOptions::new(key(), "http://mcp.example/mcp".parse().unwrap(), bench.vault.clone() as Arc<dyn Vault>);
    options.visitor = Some(Arc::new(ConsentingBrowser));
    let account = Account::with_flows(options, Arc::new(bench.script.clone()));
    let refused = account.on_rejection(refusal(401, "Bearer", None)).await;
    assert_eq!(refused.unwrap_err().remedy, AuthRecovery::Reading);
    assert_eq!(carried(&account).await.unwrap(), None);
    assert_eq!(bench.script.seen(), [""; 0]);
}

fn bound() -> AccountBench {
    let bench = AccountBench::new(None);
    let key_of_ours = DpopKey::generate().unwrap().stored_form().clone();
    let tokens = TokenSet { token_type: "DPoP".to_owned(), ..tokens("bound", Some("r0")) };
    let kept = StoredLogin { tokens: Some(tokens), dpop_key: Some(key_of_ours), ..kept("", None) };
    bench.vault.save(&key(), &kept).unwrap();
    bench
}

/// Returns the headers of the next request, and their serial.
async fn proven(bench: &AccountBench) -> (String, Value, u64) {
    let url = SERVER.parse().unwrap();
    let carried = match bench.account.credentials(&Method::POST, &url) {
        RequestCredentials::Later(pending) => pending.await.unwrap().unwrap(),
        RequestCredentials::Ready(carried) => carried,
        RequestCredentials::None => panic!("nothing is carried"),
    };
    assert!(carried.headers.iter().all(|(_, value)| value.is_sensitive()));
    let text = |index: usize| carried.headers[index].1.to_str().unwrap().to_owned();
    let claims = URL_SAFE_NO_PAD.decode(text(1).split('.').nth(1).unwrap()).unwrap();
    (text(0), serde_json::from_slice(&claims).unwrap(), carried.serial)
}

fn nonce_wanted(nonce: &'static str, serial: u64) -> AuthRejection {
    let mut refusal = refusal(401, r#"DPoP error="use_dpop_nonce""#, Some(serial));
    refusal.headers.insert("dpop-nonce", HeaderValue::from_static(nonce));
    refusal
}

#[tokio::test]
async fn demanded_nonce_is_used_without_a_refresh() {
    let bench = bound();
    let (token, first, serial) = proven(&bench).await;
    assert_eq!((token.as_str(), first.get("nonce")), ("DPoP bound", None));
    let wanted = nonce_wanted("n1", serial);
    bench.account.on_response(StatusCode::UNAUTHORIZED, &wanted.headers);
    bench.account.on_rejection(wanted.clone()).await.unwrap();
    // Another request in flight with the old nonce.
    bench.account.on_rejection(wanted).await.unwrap();
    let (_, second, _) = proven(&bench).await;
    assert_eq!(second["nonce"], "n1");
    assert_ne!(first["jti"], second["jti"]);
    assert_eq!(bench.script.seen.borrow().len(), 0);
}

#[tokio::test]
async fn repeated_nonce_demands_end_in_a_refresh() {
    let bench = bound();
    let mut nonces = 0;
    while bench.script.seen().is_empty() {
        let (_, _, serial) = proven(&bench).await;
        nonces += 1;
        assert!(nonces < 10);
        let wanted = nonce_wanted("another", serial);
        bench.account.on_response(StatusCode::UNAUTHORIZED, &wanted.headers);
        bench.account.on_rejection(wanted).await.unwrap();
    }
    assert_eq!(nonces, 4);
}

#[tokio::test]
async fn unusable_tokens_are_refreshed_on_rejection() {
    let bench = AccountBench::new(None);
    for (access, token_type) in [("a\nb", "Bearer"), ("bound without a key", "DPoP")] {
        let tokens = TokenSet { token_type: token_type.to_owned(), ..tokens(access, Some("r0")) };
        bench.vault.save(&key(), &StoredLogin { tokens: Some(tokens), ..kept("", None) }).unwrap();
        let account = bench.another();
        assert_eq!(carried(&account).await.unwrap(), None);
        account.on_rejection(refusal(401, "Bearer", None)).await.unwrap();
        assert!(carried(&account).await.unwrap().is_some(), "{token_type}");
    }
    assert_eq!(bench.script.seen(), ["renew r0 at https://as.example/token"; 2]);
}
