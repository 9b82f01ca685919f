//! Waiting for servers that start: failed and slow ones do not delay the others.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use wharf::{Host, LocalFactory, ServerState};
use wharf_client::ClientSender;

use crate::fixture::{Act, Asked, Scripted, open_builder, scripted, server, settings, until};

const SECOND: Duration = Duration::from_secs(1);

/// A server that needs this long to start.
fn starting_after(name: &'static str, time: Duration) -> LocalFactory {
    scripted(name, move |asked: &Asked<'_>| match asked.method {
        "server/discover" => {
            Act::Later(time, json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } }))
        }
        _ => Act::Ordinary,
    })
}

/// A server that exits before it answers, every time.
fn exiting() -> LocalFactory {
    Arc::new(|| {
        let end = Arc::new(Notify::new());
        end.notify_one();
        Ok(Box::new(Scripted { act: |_: Value, _: &ClientSender| (), end }))
    })
}

async fn host_with(servers: impl IntoIterator<Item = (&'static str, LocalFactory)>) -> Host {
    let builder = servers
        .into_iter()
        .fold(open_builder(), |builder, (name, factory)| builder.local_with(server(name), settings(), factory));
    builder.start().await.unwrap()
}

fn state(host: &Host, name: &str) -> ServerState {
    host.status_of(name).unwrap().state
}

/// F2: the retries of a broken server take 12 seconds.
#[tokio::test(start_paused = true)]
async fn server_is_settled_once_its_first_attempt_has_failed() {
    let host = host_with([("broken", exiting())]).await;
    let began = Instant::now();
    host.wait_until_settled().await;
    assert_eq!((state(&host, "broken"), began.elapsed()), (ServerState::Reconnecting, Duration::ZERO));
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn broken_and_slow_servers_do_not_delay_a_good_one() {
    let good = || ("good", starting_after("good", SECOND));
    let alone = host_with([good()]).await;
    let began = Instant::now();
    alone.wait_for_startup().await;
    let time_alone = began.elapsed();
    assert_eq!((state(&alone, "good"), time_alone.as_secs()), (ServerState::Ready, 1));
    alone.close().await;
    let host = host_with([good(), ("broken", exiting()), ("slow", starting_after("slow", 20 * SECOND))]).await;
    let began = Instant::now();
    host.wait_for_startup().await;
    let time = began.elapsed();
    assert_eq!((state(&host, "good"), state(&host, "slow")), (ServerState::Ready, ServerState::Connecting));
    assert!(time.as_secs_f64() <= 1.2 * time_alone.as_secs_f64(), "{time:?} instead of {time_alone:?}");
    // Later waits do not wait for the slow server again.
    let began = Instant::now();
    host.wait_for_startup().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    until(|| host.catalog().tools().count() == 1).await;
    host.wait_until_settled().await;
    assert_eq!(host.catalog().tools().count(), 2, "late tools are appended");
    host.close().await;
}

/// A server in an interpreted language beside a fast one.
#[tokio::test(start_paused = true)]
async fn server_with_unknown_tools_is_waited_for_beside_a_fast_one() {
    let times = [("fast", 20), ("python", 600), ("slow", 20_000)];
    let host = host_with(times.map(|(name, time)| (name, starting_after(name, Duration::from_millis(time))))).await;
    let began = Instant::now();
    host.wait_for_startup().await;
    assert_eq!((host.catalog().tools().count(), began.elapsed().as_millis()), (2, 1000));
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn similarly_fast_servers_are_all_waited_for() {
    let times = [1000, 1100, 1200, 1300].map(Duration::from_millis);
    let host =
        host_with(["a", "b", "c", "d"].into_iter().zip(times).map(|(name, time)| (name, starting_after(name, time))))
            .await;
    host.wait_for_startup().await;
    assert_eq!(host.catalog().tools().count(), 4);
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn only_server_is_waited_for_until_its_tools_are_listed() {
    let host = host_with([("broken", exiting()), ("slow", starting_after("slow", 20 * SECOND))]).await;
    host.wait_for_startup().await;
    assert_eq!((state(&host, "slow"), host.catalog().tools().count()), (ServerState::Ready, 1));
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn lost_server_is_not_waited_for() {
    let fake = crate::fixture::Fake::new("one");
    let host = host_with([("one", fake.factory())]).await;
    host.wait_for_startup().await;
    tokio::time::sleep(60 * SECOND).await;
    fake.end.notify_one();
    until(|| state(&host, "one") == ServerState::Reconnecting).await;
    let began = Instant::now();
    host.wait_for_startup().await;
    host.wait_until_settled().await;
    assert_eq!((state(&host, "one"), began.elapsed()), (ServerState::Reconnecting, Duration::ZERO));
    host.close().await;
}
