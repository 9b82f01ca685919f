//! The life of a server: where it stands, what brings it there, and what its calls are told meanwhile.

mod commands;
mod ends;
mod lists;
mod load;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use wharf::spec::{BackoffSettings, ReconnectPolicy};
use wharf::{HostError, LocalFactory, ServerError, ServerState};

use crate::fixture::{Act, Asked, Fake, call, definition, host_of, scripted, settings, text, until};

const SECOND: Duration = Duration::from_secs(1);

/// Makes a server while it may, and counts how often it was asked to.
fn unsteady(fake: &Fake, may: &Arc<AtomicBool>, asked: &Arc<AtomicUsize>) -> LocalFactory {
    let (make, may, asked) = (fake.factory(), Arc::clone(may), Arc::clone(asked));
    Arc::new(move || {
        asked.fetch_add(1, Ordering::SeqCst);
        if may.load(Ordering::SeqCst) { make() } else { Err("not today".to_owned()) }
    })
}

/// Waits through retries until the server is ready and listed.
async fn until_ready(host: &wharf::Host) {
    host.wait_until_ready("one").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn lost_server_stays_failed_when_reconnect_is_off() {
    let fake = Fake::new("one");
    let mut kept = settings();
    kept.reconnect = ReconnectPolicy::Off;
    let host = host_of(kept, fake.factory()).await;
    host.wait_until_settled().await;
    fake.end.notify_one();
    until(|| host.status_of("one").unwrap().state == ServerState::Failed).await;
    tokio::time::advance(3600 * SECOND).await;
    let refused = call(&host, "who").await;
    assert!(matches!(refused, Err(HostError::Unavailable { state: ServerState::Failed, .. })), "{refused:?}");
    assert_eq!(fake.made(), 1);
    host.connect("one").await.unwrap();
    assert_eq!(call(&host, "who").await.unwrap(), "one 2");
    host.close().await;
}

/// One that cannot be made is not tried again at once; a call does that, once it has been left alone for a while.
#[tokio::test(start_paused = true)]
async fn failed_server_gets_one_attempt_per_cool_down() {
    let (fake, may, asked) = (Fake::new("one"), Arc::default(), Arc::default());
    let host = host_of(settings(), unsteady(&fake, &may, &asked)).await;
    host.wait_until_settled().await;
    let status = host.status_of("one").unwrap();
    assert_eq!(status.state, ServerState::Failed);
    assert!(matches!(status.last_error.as_deref(), Some(ServerError::NotMade(why)) if why == "not today"));
    let began = Instant::now();
    assert!(matches!(call(&host, "who").await, Err(HostError::Unavailable { state: ServerState::Failed, .. })));
    assert_eq!((began.elapsed(), asked.load(Ordering::SeqCst)), (Duration::ZERO, 1), "it is told at once");
    tokio::time::advance(70 * SECOND).await;
    assert!(call(&host, "who").await.is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    tokio::time::advance(70 * SECOND).await;
    assert!(call(&host, "who").await.is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 2, "the second rest is longer");
    may.store(true, Ordering::SeqCst);
    tokio::time::advance(70 * SECOND).await;
    assert_eq!(call(&host, "who").await.unwrap(), "one 1");
    host.close().await;
}

/// S45: a server that goes as soon as it is there.
#[tokio::test(start_paused = true)]
async fn flapping_server_fails_and_recovers_after_cool_down() {
    let fake = Fake::new("one");
    let mut kept = settings();
    kept.reconnect = ReconnectPolicy::Backoff(BackoffSettings { attempts: 3, ..BackoffSettings::default() });
    let host = host_of(kept, fake.factory()).await;
    let began = Instant::now();
    for lost in 1..=4 {
        until_ready(&host).await;
        assert_eq!(fake.made(), lost);
        fake.end.notify_one();
        until(|| host.status_of("one").unwrap().state != ServerState::Ready).await;
        assert_eq!(host.status_of("one").unwrap().flapping, lost >= 2);
    }
    assert!(began.elapsed() >= 3 * SECOND, "once a second at most: {:?}", began.elapsed());
    assert_eq!(host.status_of("one").unwrap().state, ServerState::Failed);
    tokio::time::sleep(50 * SECOND).await;
    assert_eq!(fake.made(), 4);
    // It comes back by itself in the end, and once it has lasted nobody speaks of it any more.
    tokio::time::sleep(20 * SECOND).await;
    let status = host.status_of("one").unwrap();
    assert_eq!((status.state, status.restarts, fake.made()), (ServerState::Ready, 4, 5));
    tokio::time::sleep(20 * SECOND).await;
    assert!(!host.status_of("one").unwrap().flapping);
    host.close().await;
}

/// One that answers once and never again. Checks come more often than it is given time to answer one.
#[tokio::test(start_paused = true)]
async fn health_check_restarts_a_hung_server() {
    for every in [2, 30] {
        let met = Arc::new(AtomicUsize::new(0));
        let act = move |asked: &Asked<'_>| match (asked.method, asked.made) {
            ("server/discover", 1) if met.fetch_add(1, Ordering::SeqCst) > 0 => Act::Nothing,
            _ => Act::Ordinary,
        };
        let mut kept = settings();
        kept.health_check = Some(every * SECOND);
        let host = host_of(kept, scripted("one", act)).await;
        assert_eq!(call(&host, "who").await.unwrap(), "one 1");
        tokio::time::sleep((every + 15) * SECOND).await;
        let status = host.status_of("one").unwrap();
        assert_eq!((status.state, status.restarts), (ServerState::Ready, 1), "every {every} s");
        assert!(matches!(status.last_error.as_deref(), Some(ServerError::Silent(_))), "{:?}", status.last_error);
        assert_eq!(call(&host, "who").await.unwrap(), "one 2");
        host.close().await;
    }
}

/// Settings are given anew meanwhile, which must not make room for one more call.
#[tokio::test(start_paused = true)]
async fn concurrency_limit_holds_across_settings_changes() {
    let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, peak) = (Arc::clone(&under_way), Arc::clone(&most));
    let act = move |asked: &Asked<'_>| match asked.method {
        "tools/list" => Act::Answer(serde_json::json!({ "tools": [definition("slow")] })),
        "tools/call" => {
            peak.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                tokio::time::sleep(SECOND).await;
                count.fetch_sub(1, Ordering::SeqCst);
            });
            Act::Later(SECOND, text("done"))
        }
        _ => Act::Ordinary,
    };
    let mut kept = settings();
    kept.max_concurrent = Some(1);
    let host = host_of(kept, scripted("one", act)).await;
    host.wait_until_settled().await;
    let began = Instant::now();
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let host = host.clone();
            tokio::spawn(async move { call(&host, "slow").await })
        })
        .collect();
    until(|| under_way.load(Ordering::SeqCst) == 1).await;
    host.enable("one").await.unwrap();
    let late = call(&host, "slow").await;
    assert_eq!(late.unwrap(), "done");
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "done");
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert!(began.elapsed() >= 11 * SECOND, "{:?}", began.elapsed());
    host.close().await;
}
