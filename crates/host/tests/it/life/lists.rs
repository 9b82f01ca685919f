//! What a server offers, for as long as it is connected: lists that fail, change, flood and grow old.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use wharf::{Event, EventDelivery, Host, ServerState};
use wharf_client::ClientSender;

use crate::fixture::{Act, Asked, call, definition, host_of, scripted, settings, until};

const SECOND: Duration = Duration::from_secs(1);

fn names(host: &Host) -> Vec<String> {
    host.catalog().tools().map(|tool| tool.id.tool.to_string()).collect()
}

async fn warning(events: &mut wharf::EventReceiver) -> String {
    loop {
        if let Some(EventDelivery::Event(told)) = events.next().await
            && let Event::Warning { text, .. } = told.event
        {
            return text;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failed_or_hung_list_leaves_server_ready() {
    for (act, waits) in [(None, 0), (Some(()), 30)] {
        let script = move |asked: &Asked<'_>| match asked.method {
            "tools/list" => act.map_or(Act::Refuse, |()| Act::Nothing),
            _ => Act::Ordinary,
        };
        let host = host_of(settings(), scripted("one", script)).await;
        let mut events = host.events();
        let began = Instant::now();
        host.wait_until_settled().await;
        assert_eq!(began.elapsed().as_secs(), waits);
        assert!(warning(&mut events).await.starts_with("listing its tools failed: "));
        let status = host.status_of("one").unwrap();
        assert_eq!((status.state, status.offers.unwrap().tools), (ServerState::Ready, 0));
        assert!(call(&host, "who").await.unwrap_err().to_string().starts_with("server `one` has no tool `who`"));
        host.close().await;
    }
}

/// A server of the handshake era whose tools are numbered by how often they were listed. It says so when they change.
fn changing(listed: &Arc<AtomicUsize>, outbox: &Arc<std::sync::Mutex<Option<ClientSender>>>) -> wharf::LocalFactory {
    let (listed, outbox) = (Arc::clone(listed), Arc::clone(outbox));
    scripted("one", move |asked: &Asked<'_>| match asked.method {
        "server/discover" => Act::Refuse,
        "initialize" => Act::Answer(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "one", "version": "1" },
        })),
        "tools/list" => {
            *outbox.lock().unwrap() = Some(asked.outbox.clone());
            let number = listed.fetch_add(1, Ordering::SeqCst) + 1;
            Act::Answer(json!({ "tools": [definition("always"), definition(&format!("number_{number}"))] }))
        }
        _ => Act::Ordinary,
    })
}

fn say_changed(outbox: &ClientSender) {
    let news: Value = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    outbox.send(news.to_string());
}

#[tokio::test(start_paused = true)]
async fn changed_lists_are_refreshed_at_most_once_a_second() {
    let (listed, outbox) = (Arc::default(), Arc::default());
    let host = host_of(settings(), changing(&listed, &outbox)).await;
    host.wait_until_settled().await;
    assert_eq!(names(&host), ["always", "number_1"]);
    let outbox = outbox.lock().unwrap().clone().unwrap();
    let mut changes = host.catalog_changes();
    let began = Instant::now();
    while began.elapsed() < 10 * SECOND {
        say_changed(&outbox);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(2 * SECOND).await;
    let count = listed.load(Ordering::SeqCst);
    assert!((8..=12).contains(&count), "{count} times in 12 s");
    assert_eq!(names(&host), ["always".to_owned(), format!("number_{count}")]);
    assert!(changes.has_changed().unwrap() && *changes.borrow_and_update() >= 8);
    let registered: Vec<String> =
        host.registry().snapshot().iter().map(|tool| tool.description().name.to_string()).collect();
    assert!(!registered.iter().any(|name| name.ends_with("number_1")), "{registered:?}");
    assert!(registered.iter().any(|name| name.ends_with(&format!("number_{count}"))), "{registered:?}");
    tokio::time::sleep(3600 * SECOND).await;
    assert_eq!(listed.load(Ordering::SeqCst), count, "nothing has changed since");
    host.close().await;
}

/// A server that registers one more tool as soon as it has been asked for them.
#[tokio::test(start_paused = true)]
async fn change_during_first_listing_triggers_a_refresh() {
    let count = Arc::new(AtomicUsize::new(0));
    let script = move |asked: &Asked<'_>| match asked.method {
        "server/discover" => Act::Refuse,
        "initialize" => Act::Answer(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": { "listChanged": true }, "prompts": {} },
            "serverInfo": { "name": "one", "version": "1" },
        })),
        "tools/list" => {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            Act::Answer(json!({ "tools": [definition(&format!("number_{number}"))] }))
        }
        "prompts/list" => {
            if count.load(Ordering::SeqCst) == 1 {
                say_changed(asked.outbox);
            }
            Act::Later(SECOND, json!({ "prompts": [] }))
        }
        _ => Act::Ordinary,
    };
    let host = host_of(settings(), scripted("one", script)).await;
    host.wait_until_settled().await;
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(names(&host), ["number_2"]);
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn expired_lists_are_refreshed() {
    let listed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&listed);
    let script = move |asked: &Asked<'_>| match asked.method {
        "tools/list" => {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            Act::Answer(json!({ "tools": [definition(&format!("number_{number}"))], "ttlMs": 20_000 }))
        }
        _ => Act::Ordinary,
    };
    let host = host_of(settings(), scripted("one", script)).await;
    host.wait_until_settled().await;
    for number in 1..5 {
        until(|| names(&host) == [format!("number_{number}")]).await;
        tokio::time::sleep(19 * SECOND).await;
        assert_eq!(listed.load(Ordering::SeqCst), number);
        tokio::time::sleep(SECOND + Duration::from_millis(10)).await;
    }
    host.close().await;
}
