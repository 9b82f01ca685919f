//! What people can tell a host to do with a server, and what it says of it.

use std::time::Duration;

use tokio::time::Instant;
use wharf::spec::ActivationState;
use wharf::{Host, HostError, ServerState};

use crate::fixture::{Act, Asked, Fake, call, host_of, open_builder, scripted, server, settings, until};

fn state(host: &Host) -> ServerState {
    host.status_of("one").unwrap().state
}

/// Calls are refused at once, and the error says where the server stands.
async fn check_refused(host: &Host, expected: ServerState) {
    let began = Instant::now();
    match call(host, "who").await {
        Err(HostError::Unavailable { state, .. }) => assert_eq!(state, expected),
        other => panic!("{expected}: {other:?}"),
    }
    assert_eq!((state(host), began.elapsed()), (expected, Duration::ZERO));
    assert!(host.connection("one").is_err() && host.catalog().tools().count() == 0);
}

#[tokio::test(start_paused = true)]
async fn disconnected_server_stays_so_until_connected() {
    let fake = Fake::new("one");
    let host = host_of(settings(), fake.factory()).await;
    host.wait_until_settled().await;
    assert_eq!((state(&host), host.catalog().tools().count()), (ServerState::Ready, 2));
    host.disconnect("one").await.unwrap();
    check_refused(&host, ServerState::Disconnected).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    check_refused(&host, ServerState::Disconnected).await;
    host.disconnect("one").await.unwrap();
    host.connect("one").await.unwrap();
    host.connect("one").await.unwrap();
    assert_eq!(call(&host, "who").await.unwrap(), "one 2");
    host.reconnect("one").await.unwrap();
    assert_eq!(call(&host, "who").await.unwrap(), "one 3");
    let status = host.status_of("one").unwrap();
    assert_eq!((status.state, status.restarts, status.transport), (ServerState::Ready, 2, "in-process"));
    assert!(status.connected.is_some() && status.last_connected_at.is_some());
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn disabled_server_rejects_commands_until_enabled() {
    let fake = Fake::new("one");
    let mut kept = settings();
    kept.admission = ActivationState::Disabled;
    let host = host_of(kept, fake.factory()).await;
    host.wait_until_settled().await;
    check_refused(&host, ServerState::Disabled).await;
    for told in [host.connect("one").await, host.reconnect("one").await] {
        assert!(matches!(told, Err(HostError::Unavailable { state: ServerState::Disabled, .. })), "{told:?}");
    }
    host.enable("one").await.unwrap();
    assert_eq!(call(&host, "who").await.unwrap(), "one 1");
    host.disable("one").await.unwrap();
    check_refused(&host, ServerState::Disabled).await;
    assert_eq!(fake.made(), 1);
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn unapproved_server_cannot_be_enabled() {
    let fake = Fake::new("one");
    let mut kept = settings();
    kept.admission = ActivationState::Unapproved;
    let host = host_of(kept, fake.factory()).await;
    check_refused(&host, ServerState::Unapproved).await;
    for told in [host.enable("one").await, host.disable("one").await, host.connect("one").await] {
        assert!(matches!(told, Err(HostError::Unavailable { state: ServerState::Unapproved, .. })), "{told:?}");
    }
    assert_eq!(fake.made(), 0);
    host.close().await;
}

/// Connecting says how the first attempt ended, and does not wait for those that follow.
#[tokio::test(start_paused = true)]
async fn connect_waits_for_one_attempt_only() {
    let act = |asked: &Asked<'_>| if asked.made <= 2 { Act::Nothing } else { Act::Ordinary };
    let mut kept = settings();
    (kept.lazy, kept.startup_timeout) = (true, Some(Duration::from_secs(5)));
    let host = host_of(kept, scripted("one", act)).await;
    assert_eq!(state(&host), ServerState::Idle);
    let began = Instant::now();
    let connecting = host.clone();
    let attempt = tokio::spawn(async move { connecting.connect("one").await });
    until(|| state(&host) == ServerState::Connecting).await;
    let outcome = attempt.await.unwrap();
    assert!(matches!(outcome, Err(HostError::Unavailable { state: ServerState::Reconnecting, .. })), "{outcome:?}");
    assert_eq!(began.elapsed().as_secs(), 5);
    // Whoever calls waits for what follows.
    assert_eq!(call(&host, "who").await.unwrap(), "one 3");
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn unknown_server_error_suggests_nearest_name() {
    let fake = Fake::new("github");
    let host = open_builder().local_with(server("github"), settings(), fake.factory()).start().await.unwrap();
    let told = [host.connect("gihtub").await, host.disable("gihtub").await, host.disconnect("gihtub").await];
    for error in told.into_iter().chain([host.status_of("gihtub").map(drop)]) {
        assert_eq!(error.unwrap_err().to_string(), "no server named `gihtub`; did you mean `github`?");
    }
    host.close().await;
}
