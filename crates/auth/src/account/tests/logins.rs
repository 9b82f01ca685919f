//! Tests: login and logout (O10, O19).

use std::sync::Arc;

use super::script::{AccountBench, ConsentingBrowser, carried, kept, key, refusal};
use crate::error::LoginError;
use crate::vault::Vault;
use wharf_net::Authorizer;

const LOGIN: &str = "log in at https://as.example as new client for -";

#[tokio::test]
async fn o10_concurrent_logins_share_one_flow() {
    let bench = AccountBench::new(Some(Arc::new(ConsentingBrowser)));
    bench.script.close();
    let logins: Vec<_> = (0..3)
        .map(|_| {
            let account = bench.account.clone();
            tokio::spawn(async move { account.log_in(Arc::new(ConsentingBrowser)).await })
        })
        .collect();
    bench.script.await_seen(LOGIN).await;
    // A login demanded by the server joins as well.
    let account = bench.account.clone();
    let asked = tokio::spawn(async move { account.on_rejection(refusal(401, "Bearer", None)).await });
    bench.script.open(1);
    for login in logins {
        let login = login.await.unwrap().unwrap();
        assert_eq!(login.kept.tokens.unwrap().access.reveal(), "a1");
    }
    asked.await.unwrap().unwrap();
    assert_eq!(bench.script.seen(), [LOGIN]);
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
    assert_eq!(bench.tokens().0, "a1");
}

#[tokio::test]
async fn abandoned_login_is_cancelled() {
    let bench = AccountBench::new(None);
    bench.script.close();
    let account = bench.account.clone();
    let waiting = tokio::spawn(async move { account.log_in(Arc::new(ConsentingBrowser)).await });
    bench.script.await_seen(LOGIN).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    bench.script.open(1);
    bench.account.log_in(Arc::new(ConsentingBrowser)).await.unwrap();
    assert_eq!(bench.script.seen(), [LOGIN, LOGIN]);
    assert_eq!(bench.tokens().0, "a1");
}

#[tokio::test]
async fn o19_logout_wins_over_login_in_flight() {
    let bench = AccountBench::new(None);
    bench.script.close();
    let account = bench.account.clone();
    let waiting = tokio::spawn(async move { account.log_in(Arc::new(ConsentingBrowser)).await });
    bench.script.await_seen(LOGIN).await;
    assert!(!bench.account.log_out().await.unwrap().was_kept);
    bench.script.open(1);
    assert!(matches!(waiting.await.unwrap(), Err(LoginError::Needed { .. })));
    assert_eq!(bench.script.seen(), [LOGIN, "revoke a1"]);
    assert_eq!((bench.kept(), bench.carried().await.unwrap()), (None, None));
}

#[tokio::test]
async fn logout_revokes_and_deletes_tokens() {
    let bench = AccountBench::logged_in();
    bench.carried().await.unwrap();
    assert!(bench.account.log_out().await.unwrap().was_kept);
    assert_eq!(bench.script.seen(), ["revoke a0"]);
    assert_eq!((bench.kept(), bench.carried().await.unwrap()), (None, None));
    assert!(!bench.account.log_out().await.unwrap().was_kept);
    let standing = bench.account.status().await.unwrap();
    assert_eq!(standing.kept, None);
    assert!(standing.place.ends_with("mcp-auth.json`"), "{}", standing.place);
}

#[tokio::test]
async fn login_by_another_process_is_found_on_rejection() {
    let bench = AccountBench::new(None);
    assert_eq!(bench.carried().await.unwrap(), None);
    bench.vault.save(&key(), &kept("elsewhere", None)).unwrap();
    bench.refused(None).await.unwrap();
    assert_eq!(carried(&bench.account).await.unwrap().unwrap().0, "elsewhere");
    assert_eq!(bench.script.seen(), [""; 0]);
}
