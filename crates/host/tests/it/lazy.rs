//! Servers that start with their first use, and stop when nobody has used them for a while.

use std::time::Duration;

use tokio::time::Instant;
use wharf::spec::ServerSettings;
use wharf::{HostError, ServerState};

use crate::fixture::{Fake, call, host_of, open_builder, server, settings, until};

const SECOND: Duration = Duration::from_secs(1);

fn lazy() -> ServerSettings {
    let mut kept = settings();
    (kept.lazy, kept.idle_stop) = (true, Some(60 * SECOND));
    kept
}

#[tokio::test(start_paused = true)]
async fn concurrent_first_calls_share_one_start() {
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
async fn idle_server_stops_keeps_its_tools_and_restarts() {
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
async fn server_with_a_call_in_flight_is_not_idle_stopped() {
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
async fn manually_connected_server_stays_for_the_idle_timeout() {
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
async fn unused_lost_server_reconnects() {
    let fake = Fake::new("one");
    let host = host_of(lazy(), fake.factory()).await;
    assert_eq!(call(&host, "who").await.unwrap(), "one 1");
    fake.end.notify_one();
    until(|| host.status_of("one").unwrap().state == ServerState::Reconnecting).await;
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!((host.status_of("one").unwrap().state, fake.made()), (ServerState::Ready, 2));
    host.close().await;
}

/// F4: an agent sees the tools of a lazy server that was never started.
#[tokio::test(start_paused = true)]
async fn unlisted_lazy_server_starts_once_and_stops_when_idle() {
    let fake = Fake::new("one");
    let builder = open_builder().list_lazy_servers();
    let host = builder.local_with(server("one"), lazy(), fake.factory()).start().await.unwrap();
    host.wait_for_startup().await;
    assert_eq!((host.catalog().tools().count(), fake.made()), (2, 1));
    tokio::time::sleep(61 * SECOND).await;
    assert_eq!(host.status_of("one").unwrap().state, ServerState::Idle);
    host.disable("one").await.unwrap();
    host.enable("one").await.unwrap();
    assert_eq!((host.status_of("one").unwrap().state, fake.made()), (ServerState::Idle, 1));
    host.close().await;
}
