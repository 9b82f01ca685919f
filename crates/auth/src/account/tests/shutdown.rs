//! Tests: program exit, storage failures and logout lose nothing and leave nothing behind.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_net::AuthRecovery;

use super::script::{AccountBench, ConsentingBrowser, LIFE, carried, kept, key, refused_with};
use crate::error::{LoginError, TokenError};
use crate::vault::{StoredLogin, Vault};

const RENEW: &str = "renew r0 at https://as.example/token";
const LOGIN: &str = "log in at https://as.example as new client for -";

impl AccountBench {
    /// Creates a directory at the path of the temporary file, so that writes fail.
    fn block_writes(&self) -> PathBuf {
        let in_the_way = self.folder.path().join(".mcp-auth.json.wharf-tmp");
        fs::create_dir_all(in_the_way.join("full")).unwrap();
        in_the_way
    }
}

/// Starts a request that triggers a renewal, and drops it during the renewal.
async fn renewing() -> AccountBench {
    let bench = AccountBench::logged_in();
    bench.script.close();
    bench.pass(LIFE);
    let account = bench.account.clone();
    let asking = tokio::spawn(async move { carried(&account).await });
    bench.script.await_seen(RENEW).await;
    asking.abort();
    bench
}

#[tokio::test]
async fn o05_exit_waits_for_refresh_in_flight() {
    let bench = renewing().await;
    let finishing = bench.account.finish();
    tokio::pin!(finishing);
    tokio::select! {
        biased;
        () = &mut finishing => panic!("it is being renewed"),
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(bench.tokens().0, "a0");
    bench.script.open(1);
    finishing.await;
    assert_eq!(bench.tokens().0, "a1");
}

#[tokio::test(start_paused = true)]
async fn o05_exit_wait_times_out() {
    let bench = renewing().await;
    let began = tokio::time::Instant::now();
    bench.account.finish().await;
    assert!((Duration::from_secs(12)..Duration::from_secs(13)).contains(&began.elapsed()), "{:?}", began.elapsed());
    bench.another().finish().await;
}

#[tokio::test]
async fn unstorable_login_is_used_and_refreshed() {
    for was_logged_in in [false, true] {
        let bench = if was_logged_in { AccountBench::logged_in() } else { AccountBench::new(None) };
        let in_the_way = bench.block_writes();
        bench.account.log_in(Arc::new(ConsentingBrowser)).await.unwrap();
        assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
        assert_eq!(bench.kept().map(|kept| kept.tokens.unwrap().access.reveal().to_owned()).is_some(), was_logged_in);
        fs::remove_dir_all(in_the_way).unwrap();
        bench.pass(LIFE);
        assert_eq!(bench.carried().await.unwrap().unwrap().0, "a2");
        assert_eq!(bench.tokens().0, "a2");
    }
}

#[tokio::test(start_paused = true)]
async fn login_succeeds_while_another_process_holds_the_lock() {
    let bench = AccountBench::new(None);
    let _held = bench.vault.lock(&key(), Duration::ZERO).unwrap();
    let account = bench.account.clone();
    let waiting = tokio::spawn(async move { account.log_in(Arc::new(ConsentingBrowser)).await });
    while !waiting.is_finished() {
        tokio::time::advance(Duration::from_secs(10)).await;
    }
    waiting.await.unwrap().unwrap();
    assert_eq!(bench.carried().await.unwrap().unwrap().0, "a1");
}

#[tokio::test]
async fn o12_login_in_unused_keyring_can_be_deleted_and_replaced() {
    let bench = AccountBench::logged_in();
    let noted = || {
        let text = r#"{"version":1,"servers":{"s":{"accounts":{"":{"in_keyring":true}}}}}"#;
        fs::write(bench.folder.path().join("mcp-auth.json"), text).unwrap();
    };
    noted();
    assert_eq!(bench.carried().await.unwrap(), None);
    let error = bench.refused(None).await.unwrap_err();
    assert_eq!(error.remedy, AuthRecovery::Login);
    assert!(error.reason.contains("keyring"), "{error}");
    assert!(bench.account.log_out().await.unwrap().was_kept);
    assert_eq!(bench.kept(), None);
    noted();
    bench.account.log_in(Arc::new(ConsentingBrowser)).await.unwrap();
    assert_eq!(bench.tokens().0, "a1");
}

#[tokio::test]
async fn refresh_error_is_reported_though_it_cannot_be_stored() {
    for (answer, remedy) in [
        (refused_with("invalid_grant"), AuthRecovery::Login),
        (TokenError::Unclear("503".to_owned()), AuthRecovery::Waiting),
    ] {
        let bench = AccountBench::logged_in();
        bench.script.answer(Err(answer.clone()));
        bench.pass(LIFE);
        let in_the_way = bench.block_writes();
        assert_eq!(bench.carried().await.unwrap_err().remedy, remedy, "{answer:?}");
        // Tokens known to be spent are not used again.
        if remedy == AuthRecovery::Login {
            assert_eq!(bench.refused(None).await.unwrap_err().remedy, remedy);
        }
        assert_eq!(bench.script.seen(), [RENEW], "{answer:?}");
        fs::remove_dir_all(in_the_way).unwrap();
    }
}

#[tokio::test]
async fn o19_logout_wins_over_another_process_holding_the_lock() {
    let bench = AccountBench::logged_in();
    bench.pass(LIFE);
    let theirs = bench.vault.lock(&key(), Duration::ZERO).unwrap();
    let account = bench.account.clone();
    let waiting = tokio::spawn(async move { carried(&account).await });
    while !bench.account.inner.renewals.is_running() {
        tokio::task::yield_now().await;
    }
    assert!(bench.account.log_out().await.unwrap().was_kept);
    bench.vault.save(&key(), &kept("theirs", Some("their-refresh"))).unwrap();
    drop(theirs);
    bench.account.finish().await;
    let _ = waiting.await.unwrap();
    assert_eq!(bench.kept(), None);
    assert_eq!(bench.script.seen(), ["revoke a0", "revoke theirs"]);
}

#[tokio::test]
async fn o19_login_after_logout_does_not_join_the_earlier_one() {
    let bench = AccountBench::new(None);
    bench.script.close();
    let log_in = || {
        let account = bench.account.clone();
        tokio::spawn(async move { account.log_in(Arc::new(ConsentingBrowser)).await })
    };
    let doomed = log_in();
    bench.script.await_seen(LOGIN).await;
    bench.account.log_out().await.unwrap();
    let next = log_in();
    bench.script.await_times(2, LOGIN).await;
    bench.script.open(2);
    assert!(matches!(doomed.await.unwrap(), Err(LoginError::Needed { .. })));
    assert_eq!(next.await.unwrap().unwrap().kept.tokens.unwrap().access.reveal(), "a2");
    assert_eq!(bench.tokens().0, "a2");
    assert_eq!(bench.script.seen(), [LOGIN, LOGIN, "revoke a1"]);
}

#[tokio::test]
async fn logout_revokes_tokens_of_every_issuer() {
    let bench = AccountBench::logged_in();
    let moved = StoredLogin { issuer: "https://new.example".to_owned(), ..kept("new", None) };
    bench.vault.save(&key(), &moved).unwrap();
    assert!(bench.account.log_out().await.unwrap().was_kept);
    let mut seen = bench.script.seen();
    seen.sort();
    assert_eq!(seen, ["revoke a0", "revoke new"]);
}
