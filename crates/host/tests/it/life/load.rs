//! Commands while hundreds of calls are under way: each call ends once, and none is answered by another server.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use wharf::{CallError, CallOptions, Host, HostError, LocalFactory};

use crate::fixture::{Act, Asked, definition, none, open_builder, scripted, server, settings, text, tool};

const NAMES: [&str; 3] = ["one", "two", "three"];
const CALLS: usize = 300;

/// A server whose tool `echo` gives back what it is given, with the server's name, after a while.
fn echoing(name: &'static str) -> LocalFactory {
    scripted(name, move |asked: &Asked<'_>| match asked.method {
        "tools/list" => Act::Answer(json!({ "tools": [definition("echo")] })),
        "tools/call" => {
            let number = asked.message["params"]["arguments"]["number"].as_u64().unwrap();
            Act::Later(Duration::from_millis(number % 50), text(format!("{name} {number}")))
        }
        _ => Act::Ordinary,
    })
}

async fn echo(host: Host, name: &'static str, number: usize) -> (usize, Result<String, HostError>) {
    // Not all at once.
    tokio::time::sleep(Duration::from_millis(number as u64 * 7)).await;
    let arguments = wharf::RawJson::parse(format!(r#"{{"number":{number}}}"#)).unwrap();
    let reply = host.call(&tool(name, "echo"), &arguments, CallOptions::default()).await;
    let said = reply.map(|reply| reply.text().unwrap());
    if let Ok(said) = &said {
        assert_eq!(*said, format!("{name} {number}"), "answered by another server, or another's answer");
    }
    (number, said)
}

/// Whether a call that was in the way of a command may end so.
fn is_due_to_command(error: &HostError) -> bool {
    match error {
        HostError::Unavailable { .. } => true,
        HostError::Call { error, .. } => {
            matches!(error, CallError::OutcomeUnknown(_) | CallError::RetryableDisconnect(_))
        }
        _ => false,
    }
}

#[tokio::test(start_paused = true)]
async fn commands_under_load_never_lose_or_misroute_calls() {
    let builder = NAMES
        .into_iter()
        .fold(open_builder(), |builder, name| builder.local_with(server(name), settings(), echoing(name)));
    let host = builder.start().await.unwrap();
    host.wait_until_settled().await;
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        for name in NAMES {
            let call = echo(host.clone(), name, number);
            calls.spawn(async move { (name, call.await) });
        }
    }
    for round in 0..20 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        command(&host, "one", round).await;
        command(&host, "two", round + 1).await;
    }
    for name in ["one", "two"] {
        host.enable(name).await.unwrap();
        host.connect(name).await.unwrap();
    }
    let (mut ended, mut answered) = (HashMap::new(), HashMap::new());
    while let Some(call) = calls.join_next().await {
        let (name, (number, outcome)) = call.unwrap();
        assert_eq!(ended.insert((name, number), ()), None, "a call ends once");
        match outcome {
            Ok(_) => *answered.entry(name).or_insert(0) += 1,
            Err(error) => assert!(name != "three" && is_due_to_command(&error), "{name} {number}: {error}"),
        }
    }
    assert_eq!((ended.len(), answered["three"]), (CALLS * NAMES.len(), CALLS));
    assert!(answered["one"] > 50 && answered["two"] > 50, "{answered:?}");
    assert!(answered["one"] < CALLS && answered["two"] < CALLS, "nothing was in the way: {answered:?}");
    for name in NAMES {
        let (_, outcome) = echo(host.clone(), name, 1).await;
        outcome.unwrap();
        assert_eq!(host.status_of(name).unwrap().in_flight, 0);
    }
    host.close().await;
}

async fn command(host: &Host, name: &str, round: usize) {
    let told = match round % 5 {
        0 => host.disable(name).await,
        1 => host.enable(name).await,
        2 => host.reconnect(name).await,
        3 => host.disconnect(name).await,
        _ => host.connect(name).await,
    };
    // A server that is switched off cannot be connected.
    assert!(told.is_ok() || matches!(told, Err(HostError::Unavailable { .. })), "{told:?}");
}

/// A reader that never reads is told how many it missed, and nobody waits for it.
#[tokio::test(start_paused = true)]
async fn lagging_event_subscriber_does_not_block_calls() {
    let host = open_builder().local_with(server("one"), settings(), echoing("one")).start().await.unwrap();
    let mut events = host.events();
    for _ in 0..3_000 {
        let arguments = wharf::RawJson::parse(r#"{"number":0}"#.to_owned()).unwrap();
        host.call(&tool("one", "echo"), &arguments, CallOptions::default()).await.unwrap();
    }
    let first = events.next().await;
    assert!(matches!(first, Some(wharf::EventDelivery::Missed(missed)) if missed > 1_900), "{first:?}");
    assert!(matches!(events.next().await, Some(wharf::EventDelivery::Event(_))));
    assert!(host.call(&tool("one", "nothing"), &none(), CallOptions::default()).await.is_err());
    host.close().await;
}
