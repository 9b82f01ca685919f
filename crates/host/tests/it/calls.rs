//! Calls reach their servers, whatever becomes of those meanwhile.

use std::time::Duration;

use wharf::{CallError, CallOptions, HostError, ServerState};

use crate::fixture::{Fake, none, open_builder, server, settings, tool};

#[tokio::test(start_paused = true)]
async fn call_reaches_only_its_server() {
    let (one, two) = (Fake::new("one"), Fake::new("two"));
    let builder = open_builder().local_with(server("one"), settings(), one.factory());
    let host = builder.local_with(server("two"), settings(), two.factory()).start().await.unwrap();
    for name in ["one", "two"] {
        let reply = host.call(&tool(name, "who"), &none(), CallOptions::default()).await.unwrap();
        assert_eq!(reply.text().unwrap(), format!("{name} 1"));
    }
    host.wait_until_settled().await;
    assert_eq!(host.catalog().tools().count(), 4);
    assert_eq!(host.resolve("mcp__one__who").unwrap(), tool("one", "who"));
    host.close().await;
    let closed = host.call(&tool("one", "who"), &none(), CallOptions::default()).await;
    assert!(matches!(closed, Err(HostError::Closed)), "{closed:?}");
}

#[tokio::test(start_paused = true)]
async fn lost_server_fails_its_calls_and_reconnects() {
    let fake = Fake::new("one");
    let host = open_builder().local_with(server("one"), settings(), fake.factory()).start().await.unwrap();
    host.wait_until_settled().await;
    let (stuck, id) = (host.clone(), tool("one", "never"));
    let call = tokio::spawn(async move { stuck.call(&id, &none(), CallOptions::default()).await });
    while host.status_of("one").unwrap().in_flight == 0 {
        tokio::task::yield_now().await;
    }
    let before = tokio::time::Instant::now();
    fake.end.notify_one();
    let ended = call.await.unwrap();
    assert!(matches!(ended, Err(HostError::Call { error: CallError::OutcomeUnknown(_), .. })), "{ended:?}");
    let reply = host.call(&tool("one", "who"), &none(), CallOptions::default()).await.unwrap();
    assert_eq!(reply.text().unwrap(), "one 2");
    assert!(before.elapsed() <= Duration::from_millis(1500), "{:?}", before.elapsed());
    let status = host.status_of("one").unwrap();
    assert_eq!((status.state, status.restarts), (ServerState::Ready, 1));
    host.close().await;
}
