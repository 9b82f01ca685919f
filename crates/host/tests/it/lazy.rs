//! Servers that start with their first use, and stop when nobody has used them for a while.

use std::time::Duration;

use tokio::time::Instant;
use wharf::spec::ServerSettings;
use wharf::{HostError, ServerState};

use crate::fixture::{Fake, call, host_of, settings, until};

const SECOND: Duration = Duration::from_secs(1);

fn lazy() -> ServerSettings {
    let mut kept = settings();
    (kept.lazy, kept.idle_stop) = (true, Some(60 * SECOND));
    kept
}

#[tokio::test(start_paused = true)]
async fn the_first_call_starts_it_and_hundreds_share_the_start() {
    let fake = Fake::new("one");
    let host = host_of(lazy(), fake.factory()).await;
    host.wait_until_settled().await;
    tokio::time::sleep(3600 * SECOND).await;
    assert_eq!((host.status_of("one").unwrap().state, fake.made()), (ServerState::Idle, 0));
    assert!(matches!(host.connection("one"), Err(HostError::Unavailable { state: ServerState::Idle, .. })));
    let calls: Vec<_> = (0..300)
        .map(|_| {
            let host = host.clone();
            tokio::spawn(async move { call(&host, "who").await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "one 1");
    }
    assert_eq!(fake.made(), 1);
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn it_stops_when_unused_keeps_its_tools_and_starts_again() {
    let fake = Fake::new("one");
    let host = host_of(lazy(), fake.factory()).await;
    for start in 1..4 {
        assert_eq!(call(&host, "who").await.unwrap(), format!("one {start}"));
        tokio::time::sleep(59 * SECOND).await;
        assert_eq!(host.status_of("one").unwrap().state, ServerState::Ready);
        tokio::time::sleep(2 * SECOND).await;
        let status = host.status_of("one").unwrap();
        assert_eq!((status.state, status.offers.unwrap().tools), (ServerState::Idle, 2));
        assert!(status.last_error.is_none());
        tokio::time::sleep(1000 * SECOND).await;
    }
    assert_eq!(fake.made(), 3);
    host.close().await;
}

/// A call without end is use, however long it takes.
#[tokio::test(start_paused = true)]
async fn it_does_not_stop_under_a_call() {
    let fake = Fake::new("one");
    let mut kept = lazy();
    kept.timeout = Some(500 * SECOND);
    let host = host_of(kept, fake.factory()).await;
    let began = Instant::now();
    let stuck = call(&host, "never").await.unwrap_err();
    assert!(matches!(stuck, HostError::Call { .. }), "{stuck}");
    assert_eq!((began.elapsed().as_secs(), fake.made()), (500, 1));
    assert_eq!(host.status_of("one").unwrap().state, ServerState::Ready);
    tokio::time::sleep(61 * SECOND).await;
    assert_eq!(host.status_of("one").unwrap().state, ServerState::Idle);
    host.close().await;
}

/// Brought up by hand long after it was last used, it stays for a while as well.
#[tokio::test(start_paused = true)]
async fn one_that_is_connected_by_hand_stays_its_time() {
    let fake = Fake::new("one");
    let host = host_of(lazy(), fake.factory()).await;
    tokio::time::sleep(3600 * SECOND).await;
    host.connect("one").await.unwrap();
    tokio::time::sleep(50 * SECOND).await;
    assert_eq!((host.status_of("one").unwrap().state, fake.made()), (ServerState::Ready, 1));
    tokio::time::sleep(11 * SECOND).await;
    assert_eq!(host.status_of("one").unwrap().state, ServerState::Idle);
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn one_that_is_lost_while_nobody_needs_it_comes_back_by_itself() {
    let fake = Fake::new("one");
    let host = host_of(lazy(), fake.factory()).await;
    assert_eq!(call(&host, "who").await.unwrap(), "one 1");
    fake.end.notify_one();
    until(|| host.status_of("one").unwrap().state == ServerState::Reconnecting).await;
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!((host.status_of("one").unwrap().state, fake.made()), (ServerState::Ready, 2));
    host.close().await;
}
