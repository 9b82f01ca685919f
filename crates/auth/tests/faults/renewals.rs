//! Renewing: what the token endpoint does to it, and what two of us do to each other.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_net::AuthRecovery;
use wharf_testkit::authd::{RefreshRotation, TokenBehaviour};

use crate::scene::Scene;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

#[tokio::test]
async fn o01_tokens_are_refreshed_before_expiry_and_on_401() {
    let scene = Scene::new(|_| {});
    let account = scene.logged_in().await;
    let knocks = scene.authd.counts().refusals;
    scene.clock.jump(HOUR - 31_000);
    assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
    assert_eq!(scene.authd.counts().refreshes, 0, "there is time left");
    scene.clock.jump(2_000);
    assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
    assert_eq!((scene.authd.counts().refreshes, scene.authd.counts().refusals), (1, knocks), "ahead of its end");
    scene.authd.expire_access_tokens();
    assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
    assert_eq!((scene.authd.counts().refreshes, scene.authd.counts().refusals), (2, knocks + 1), "when it is refused");
}

#[tokio::test]
async fn o01_clock_skew_of_five_minutes_costs_one_refresh() {
    for skew in [-300_000, 300_000] {
        let scene = Scene::new(|_| {});
        let account = scene.logged_in().await;
        scene.clock.jump(skew);
        scene.authd.expire_access_tokens();
        for _ in 0..3 {
            assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
        }
        assert_eq!(scene.authd.counts().refreshes, 1);
    }
}

#[tokio::test]
async fn o01_repeated_rejections_end_the_request() {
    let scene = Scene::new(|switches| switches.access_uses = Some(0));
    let account = scene.attended();
    assert!(scene.ask(&account, "tools/list").await.is_err());
    let counts = scene.authd.counts();
    let asked = scene.authd.requests().iter().filter(|seen| seen.is_request("tools/list")).count();
    // Each login knocks once besides, since the refusal does not say where the server describes itself.
    assert!(asked <= 3 && counts.refusals <= 5 && counts.authorizations <= 3, "{counts:?}");
    let posts = scene.grants("refresh_token") + scene.grants("authorization_code");
    assert!(scene.ask(&account, "tools/list").await.is_err());
    let more = scene.grants("refresh_token") + scene.grants("authorization_code") - posts;
    assert!(more <= 1, "{more} more tokens for a server that takes none");
}

#[tokio::test]
async fn o02_tokens_refreshed_by_another_process_are_adopted() {
    let scene = Scene::new(|_| {});
    let ours = scene.logged_in().await;
    let other = scene.account();
    assert_eq!(scene.ask(&other, "tools/list").await, Ok(200));
    scene.authd.expire_access_tokens();
    assert_eq!(scene.ask(&other, "tools/list").await, Ok(200));
    assert_eq!(scene.ask(&ours, "tools/list").await, Ok(200));
    let counts = scene.authd.counts();
    assert_eq!((counts.refreshes, counts.reused), (1, 0));
}

#[tokio::test]
async fn t47_concurrent_processes_refresh_once() {
    let scene = Scene::new(|_| {});
    scene.logged_in().await;
    let accounts = [(); 8].map(|()| scene.account());
    for renewals in 1..4 {
        scene.authd.expire_access_tokens();
        let answers = all(accounts.iter().map(|account| scene.ask(account, "tools/list"))).await;
        assert_eq!(answers, vec![Ok(200); accounts.len()]);
        let counts = scene.authd.counts();
        assert_eq!((counts.refreshes, counts.rotations, counts.reused), (renewals, renewals, 0));
    }
}

#[tokio::test]
async fn o03_only_a_final_refusal_deletes_the_login() {
    let cases = [
        (TokenBehaviour::InvalidGrant, AuthRecovery::Login, false),
        (TokenBehaviour::OtherError, AuthRecovery::Waiting, true),
        (TokenBehaviour::Unauthorized, AuthRecovery::Login, true),
        (TokenBehaviour::TooMany, AuthRecovery::Waiting, true),
        (TokenBehaviour::ServerError, AuthRecovery::Waiting, true),
        (TokenBehaviour::Garbage, AuthRecovery::Waiting, true),
    ];
    let _stopped = Stopped::clock();
    for (fault, remedy, are_kept) in cases {
        let scene = Scene::new(|switches| switches.refresh = fault);
        let account = scene.logged_in().await;
        scene.authd.expire_access_tokens();
        let why = scene.ask(&account, "tools/list").await.unwrap_err();
        let kept = account.status().await.unwrap().kept.unwrap();
        assert_eq!(kept.tokens.is_some(), are_kept, "{fault:?}");
        assert!(kept.last_error.is_some(), "{fault:?}");
        assert_eq!(why.remedy, remedy, "{fault:?}: {why:?}");
        let refreshes = scene.authd.counts().refreshes;
        assert!(scene.ask(&account, "tools/list").await.is_err());
        assert_eq!(scene.authd.counts().refreshes, refreshes, "{fault:?}: not again at once");
        scene.authd.change_switches(|switches| switches.refresh = TokenBehaviour::Good);
        let later = scene.account();
        assert_eq!(scene.ask(&later, "tools/list").await.is_ok(), are_kept, "{fault:?}");
    }
}

#[tokio::test]
async fn o03_silent_token_endpoint_times_out_without_logout() {
    let scene = Scene::new(|switches| switches.refresh = TokenBehaviour::Hang);
    let account = scene.logged_in().await;
    scene.authd.expire_access_tokens();
    let asking = scene.ask(&account, "tools/list");
    tokio::pin!(asking);
    tokio::select! {
        answer = &mut asking => panic!("{answer:?} from a silent endpoint"),
        _ = scene.authd.wait_for_request(|seen| seen.is_grant("refresh_token")) => tokio::time::pause(),
    }
    let began = tokio::time::Instant::now();
    assert_eq!(asking.await.unwrap_err().remedy, AuthRecovery::Waiting);
    assert!(began.elapsed() <= Duration::from_secs(31), "{:?}", began.elapsed());
    tokio::time::resume();
    assert!(account.status().await.unwrap().kept.unwrap().tokens.is_some());
}

#[tokio::test]
async fn o04_omitted_refresh_token_is_retained() {
    let scene = Scene::new(|switches| switches.rotation = RefreshRotation::Omitted);
    let account = scene.logged_in().await;
    for renewals in 1..4 {
        scene.authd.expire_access_tokens();
        assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
        assert_eq!(scene.authd.counts().refreshes, renewals);
    }
}

#[tokio::test]
async fn o05_lost_token_response_costs_at_most_a_login() {
    let scene = Scene::new(|switches| switches.refresh = TokenBehaviour::CutAfter);
    let account = scene.logged_in().await;
    scene.authd.expire_access_tokens();
    assert!(scene.ask(&account, "tools/list").await.is_err());
    scene.authd.change_switches(|switches| switches.refresh = TokenBehaviour::Good);
    let restarted = scene.account();
    assert_eq!(scene.ask(&restarted, "tools/list").await.unwrap_err().remedy, AuthRecovery::Login);
    let counts = scene.authd.counts();
    assert_eq!((counts.concurrent, counts.stale), (0, 0));
    restarted.log_in(scene.person()).await.unwrap();
    assert_eq!(scene.ask(&restarted, "tools/list").await, Ok(200));
}

#[tokio::test]
async fn o13_damaged_file_needs_a_login_and_is_backed_up() {
    for damage in ["", "{\"version\":1,\"servers\"", "[]"] {
        let scene = Scene::new(|_| {});
        scene.logged_in().await;
        let file = scene.directory.path().join("mcp-auth.json");
        std::fs::write(&file, damage).unwrap();
        let account = scene.account();
        assert!(scene.ask(&account, "tools/list").await.is_err(), "{damage}");
        account.log_in(scene.person()).await.unwrap();
        assert_eq!(scene.ask(&account, "tools/list").await, Ok(200), "{damage}");
        let names = std::fs::read_dir(scene.directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let aside = names.filter(|name| name.to_string_lossy().contains("damaged")).count();
        assert_eq!(aside, 1, "{damage}");
    }
}

#[tokio::test]
async fn o17_invalid_expires_in_is_tolerated() {
    for said in [json!(0), json!(-1), json!("3600"), json!(1e300), json!([]), Value::Null] {
        let scene = Scene::new(|switches| switches.expires_in = said.clone());
        let account = scene.logged_in().await;
        for _ in 0..3 {
            assert_eq!(scene.ask(&account, "tools/list").await, Ok(200), "{said}");
        }
        assert_eq!(scene.authd.counts().refreshes, 0, "{said}: live until it is refused");
        scene.authd.expire_access_tokens();
        assert_eq!(scene.ask(&account, "tools/list").await, Ok(200), "{said}");
        assert_eq!(scene.authd.counts().reused, 0);
    }
}

#[tokio::test]
async fn o18_hundred_callers_share_one_refresh() {
    let scene = Scene::new(|_| {});
    let account = scene.logged_in().await;
    scene.authd.expire_access_tokens();
    scene.authd.close_gate();
    let refused = scene.authd.counts().refusals;
    let callers = all((0..100).map(|_| scene.ask(&account, "tools/list")));
    let opened = async {
        scene.authd.wait_for_nth_request(100, |seen| seen.is_request("tools/list")).await;
        scene.authd.wait_for_request(|seen| seen.is_grant("refresh_token")).await;
        scene.authd.open_gate();
    };
    let (answers, ()) = tokio::join!(callers, opened);
    assert!(answers.iter().all(|answer| *answer == Ok(200)));
    let counts = scene.authd.counts();
    assert_eq!((counts.refreshes, counts.refusals - refused), (1, 100));
}

#[tokio::test]
async fn o18_slow_token_endpoint_times_out_after_30s() {
    let scene = Scene::new(|_| {});
    let account = scene.logged_in().await;
    scene.authd.expire_access_tokens();
    scene.authd.close_gate();
    let callers = all((0..20).map(|_| scene.ask(&account, "tools/list")));
    tokio::pin!(callers);
    let all_wait = async {
        scene.authd.wait_for_nth_request(20, |seen| seen.is_request("tools/list")).await;
        scene.authd.wait_for_request(|seen| seen.is_grant("refresh_token")).await;
    };
    tokio::select! {
        answers = &mut callers => panic!("{answers:?} through a closed gate"),
        () = all_wait => tokio::time::pause(),
    }
    let began = tokio::time::Instant::now();
    let answers = callers.await;
    assert!(
        answers.iter().all(|answer| answer.as_ref().is_err_and(|why| why.remedy == AuthRecovery::Waiting)),
        "{answers:?}"
    );
    assert!(began.elapsed() <= Duration::from_secs(31), "{:?}", began.elapsed());
    assert_eq!(scene.authd.counts().refreshes, 1);
}

#[tokio::test]
async fn o19_logout_wins_over_refresh() {
    let scene = Scene::new(|_| {});
    let account = scene.logged_in().await;
    scene.authd.expire_access_tokens();
    scene.authd.close_gate();
    let asking = scene.ask(&account, "tools/list");
    let leaving = async {
        scene.authd.wait_for_request(|seen| seen.is_grant("refresh_token")).await;
        let (left, ()) = tokio::join!(account.log_out(), async { scene.authd.open_gate() });
        left
    };
    let (answer, left) = tokio::join!(asking, leaving);
    assert!(answer.is_err() && left.unwrap().was_kept);
    assert!(account.status().await.unwrap().kept.is_none());
    assert_eq!(scene.ask(&account, "tools/list").await.unwrap_err().remedy, AuthRecovery::Login);
    scene.authd.wait_for_request(|seen| seen.path == "/revoke").await;
}

#[tokio::test]
async fn o20_clock_jump_of_a_day_does_not_end_a_login() {
    for jump in [-DAY, DAY] {
        let scene = Scene::new(|_| {});
        let account = scene.account();
        let mut person = scene.somebody();
        person.jump = jump;
        account.log_in(std::sync::Arc::new(person)).await.unwrap();
        assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
        scene.clock.jump(-jump);
        assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
        assert!(scene.authd.counts().refreshes <= 1);
    }
}

/// Stops the clock of this test's runtime, which does not run ahead either while something is waited for.
struct Stopped {
    _ends: std::sync::mpsc::Sender<()>,
}

impl Stopped {
    fn clock() -> Self {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        // The clock does not run ahead while work is done elsewhere; this ends when the sender is dropped.
        drop(tokio::task::spawn_blocking(move || receiver.recv()));
        tokio::time::pause();
        Self { _ends: sender }
    }
}

/// All of them at once, and what came of each.
async fn all<T, F: Future<Output = T>>(futures: impl Iterator<Item = F>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(move |context| {
        for (future, outcome) in waiting.iter_mut().filter(|(_, outcome)| outcome.is_none()) {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                *outcome = Some(value);
            }
        }
        let all_there = waiting.iter().all(|(_, outcome)| outcome.is_some());
        if !all_there {
            return Poll::Pending;
        }
        Poll::Ready(waiting.iter_mut().filter_map(|(_, outcome)| outcome.take()).collect())
    })
    .await
}
