//! Polling: how often, what is told, what is allowed, and when it ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use wharf::tools::{CallRefusal, Gate, GateDecision, GatedCall, RefusalReason};
use wharf::{Event, Host, ServerState};

use crate::fixture::{open_builder, server, settings};
use crate::library::{Library, call, complaint, data, listed, next, notes, text, until};

fn polled(event: Event) -> Option<Result<String, String>> {
    let Event::Polled { outcome, .. } = event else { return None };
    Some(outcome.map(|result| result.as_str().to_owned()))
}

async fn polling(library: &Library, gate: Option<Arc<dyn Gate>>) -> Host {
    let builder = open_builder().local_with(server("library"), settings(), library.factory());
    let builder = if let Some(gate) = gate { builder.gate(gate) } else { builder };
    let host = builder.start().await.unwrap();
    listed(&host, 1).await;
    host
}

fn resource(interval: Option<u64>) -> Value {
    json!({ "type": "resource", "server": "library", "uri": "book:one", "intervalMs": interval })
}

fn tool() -> Value {
    json!({ "type": "tool", "server": "library", "toolName": "look", "intervalMs": 1000 })
}

#[tokio::test(start_paused = true)]
async fn polls_follow_their_interval_with_jitter() {
    for (interval, least, most) in [(None, 4_500, 5_500), (Some(1_000), 1_000, 1_100), (Some(60_000), 54_000, 66_000)] {
        let library = Library::new();
        let host = polling(&library, None).await;
        let mut events = host.events();
        let began = Instant::now();
        call(&host, "SubscribePolling", resource(interval)).await.unwrap();
        let mut at = Vec::new();
        for _ in 0..12 {
            next(&mut events, polled).await.unwrap();
            at.push(Instant::now());
        }
        assert_eq!(at[0], began, "the first one is made at once");
        let gaps: Vec<u128> = at.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
        // Timers are rounded up to a millisecond.
        assert!(gaps.iter().all(|gap| (least..=most + 1).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().any(|gap| *gap != gaps[0]), "{gaps:?}");
        assert_eq!(library.read().len(), 12, "none is answered from what is kept");
        host.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_poll_delays_the_next() {
    let library = Library::new();
    library.shelves().silent = true;
    let host = polling(&library, None).await;
    let mut events = host.events();
    call(&host, "SubscribePolling", tool()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(library.count("tools/call"), 1);
    library.answer_held();
    let answered = Instant::now();
    next(&mut events, polled).await.unwrap();
    next(&mut events, polled).await.unwrap();
    assert!(answered.elapsed() >= Duration::from_secs(1) && library.count("tools/call") == 2);
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn only_changed_results_reach_the_agent() {
    let library = Library::new();
    let host = polling(&library, None).await;
    let mut events = host.events();
    call(&host, "SubscribePolling", resource(None)).await.unwrap();
    let says =
        |what: &str| format!("library: poll-1: the resource book:one returned:\n[resource book:one, 1 line]\n{what}");
    let failed = "library: poll-1: polling the resource book:one failed (it will be retried): \
                  server `library`: server returned an error: no such thing (code -32602)";
    let hostile = "\u{202e}twice\u{1b}[2J";
    for (contents, expected) in [
        (Some("once"), vec![says("once")]),
        (Some("once"), vec![]),
        (Some(hostile), vec![says(r"\u{202e}twice\u{1b}[2J")]),
        (None, vec![failed.to_owned()]),
        (None, vec![]),
        (Some(hostile), vec![says(r"\u{202e}twice\u{1b}[2J")]),
        (Some(hostile), vec![]),
    ] {
        match contents {
            Some(what) => library.shelves().contents.insert("book:one".to_owned(), json!([text("book:one", what)])),
            None => library.shelves().contents.remove("book:one"),
        };
        assert_eq!(next(&mut events, polled).await.is_ok(), contents.is_some());
        assert_eq!(notes(&host), expected, "{contents:?}");
    }
    library.shelves().contents.insert("book:one".to_owned(), json!([text("book:one", &"x".repeat(1 << 20))]));
    next(&mut events, polled).await.unwrap();
    assert!(notes(&host)[0].len() < 5_000);
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn failed_polls_back_off() {
    let library = Library::new();
    library.shelves().contents.clear();
    let host = polling(&library, None).await;
    let mut events = host.events();
    let began = Instant::now();
    call(&host, "SubscribePolling", resource(Some(1_000))).await.unwrap();
    for _ in 0..6 {
        next(&mut events, polled).await.unwrap_err();
    }
    assert!(began.elapsed() >= Duration::from_secs(2 + 4 + 8 + 16 + 32) * 9 / 10, "{:?}", began.elapsed());
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn polling_survives_a_reconnect() {
    let library = Library::new();
    let host = polling(&library, None).await;
    let mut events = host.events();
    call(&host, "SubscribePolling", tool()).await.unwrap();
    next(&mut events, polled).await.unwrap();
    library.end.notify_one();
    next(&mut events, |event| matches!(event, Event::State { state: ServerState::Reconnecting, .. }).then_some(()))
        .await;
    library.shelves().said = "other".to_owned();
    while next(&mut events, polled).await.is_err() {}
    assert!(notes(&host).iter().any(|note| note.ends_with("\nother")));
    host.close().await;
}

/// Asks for everything, or lets it pass or denies it; counts how often somebody was really asked.
#[derive(Default)]
struct Strict {
    denies: AtomicBool,
    passes: AtomicBool,
    says_no: AtomicBool,
    asked: Arc<AtomicUsize>,
    seen: Mutex<Vec<String>>,
    callers: Mutex<Vec<String>>,
}

impl Gate for Strict {
    fn check(&self, attempt: GatedCall<'_>) -> GateDecision {
        if attempt.tool.source.is_none() {
            return GateDecision::Pass;
        }
        self.seen.lock().unwrap().push(attempt.arguments.as_str().to_owned());
        self.callers.lock().unwrap().push(attempt.caller.name.to_string());
        if self.passes.load(Ordering::SeqCst) {
            return GateDecision::Pass;
        }
        if self.denies.load(Ordering::SeqCst) {
            return GateDecision::Refuse(CallRefusal::new(RefusalReason::Denied { rule: "no looking".to_owned() }));
        }
        let (asked, no) = (Arc::clone(&self.asked), self.says_no.load(Ordering::SeqCst));
        GateDecision::Ask(Box::pin(async move {
            asked.fetch_add(1, Ordering::SeqCst);
            if no { Err(CallRefusal::new(RefusalReason::SaidNo { because: None })) } else { Ok(()) }
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn polled_tool_needs_one_permission_until_denied() {
    let (library, gate) = (Library::new(), Arc::new(Strict::default()));
    let host = polling(&library, Some(Arc::clone(&gate) as _)).await;
    let mut events = host.events();
    gate.says_no.store(true, Ordering::SeqCst);
    let refused = complaint(&host, "SubscribePolling", tool()).await;
    assert!(refused.contains("denied by the user"), "{refused}");
    assert_eq!((library.count("tools/call"), gate.asked.swap(0, Ordering::SeqCst)), (0, 1));
    gate.says_no.store(false, Ordering::SeqCst);
    let mut asked = tool();
    asked["arguments"] = json!({ "at": 12345678901234567890u64 });
    call(&host, "SubscribePolling", asked).await.unwrap();
    for _ in 0..5 {
        next(&mut events, polled).await.unwrap();
    }
    assert_eq!((library.count("tools/call"), gate.asked.load(Ordering::SeqCst)), (5, 1));
    assert_eq!(gate.callers.lock().unwrap()[0], "agent (repeated every 1 s until stopped)");
    assert!(gate.seen.lock().unwrap()[1..].iter().all(|arguments| arguments == r#"{"at":12345678901234567890}"#));
    notes(&host);
    gate.denies.store(true, Ordering::SeqCst);
    next(&mut events, polled).await.unwrap_err();
    assert_eq!(notes(&host), ["library: poll-1 ended: the tool look: denied: no looking"]);
    ended(&host, &library, 5).await;
}

#[tokio::test(start_paused = true)]
async fn poll_allowed_by_rule_ends_when_a_prompt_is_needed() {
    let (library, gate) = (Library::new(), Arc::new(Strict::default()));
    gate.passes.store(true, Ordering::SeqCst);
    let host = polling(&library, Some(Arc::clone(&gate) as _)).await;
    let mut events = host.events();
    call(&host, "SubscribePolling", tool()).await.unwrap();
    next(&mut events, polled).await.unwrap();
    notes(&host);
    gate.passes.store(false, Ordering::SeqCst);
    next(&mut events, polled).await.unwrap_err();
    assert_eq!(notes(&host), ["library: poll-1 ended: the tool look: permission has to be granted again"]);
    assert_eq!(gate.asked.load(Ordering::SeqCst), 0);
    ended(&host, &library, 1).await;
}

#[tokio::test(start_paused = true)]
async fn changed_or_removed_tool_ends_its_poll() {
    for (changed, why) in [
        (
            json!([{ "name": "look", "description": "new", "inputSchema": { "type": "object" } }]),
            "definition has changed since the polling was permitted",
        ),
        (json!([]), "has no tool `look`"),
    ] {
        let (library, gate) = (Library::new(), Arc::new(Strict::default()));
        let host = polling(&library, Some(Arc::clone(&gate) as _)).await;
        let mut events = host.events();
        call(&host, "SubscribePolling", tool()).await.unwrap();
        next(&mut events, polled).await.unwrap();
        until(|| library.count("subscriptions/listen") > 0).await;
        library.shelves().tools = changed;
        library.notify("notifications/tools/list_changed", json!({}));
        while next(&mut events, polled).await.is_ok() {}
        let told = notes(&host).pop().unwrap();
        assert!(told.contains("poll-1 ended") && told.contains(why), "{told}");
        ended(&host, &library, library.count("tools/call")).await;
    }
}

/// Nothing more is polled, and nothing is left to be stopped.
async fn ended(host: &Host, library: &Library, calls: usize) {
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(library.count("tools/call"), calls);
    assert_eq!(data(host, "UnsubscribePolling", json!({ "server": "library" })).await["unsubscribed"], false);
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn unsubscribed_poll_stops_immediately() {
    let library = Library::new();
    library.shelves().silent = true;
    let host = polling(&library, None).await;
    call(&host, "SubscribePolling", tool()).await.unwrap();
    until(|| library.count("tools/call") == 1).await;
    call(&host, "UnsubscribePolling", json!({ "subscriptionId": "poll-1" })).await.unwrap();
    until(|| library.count("notifications/cancelled") == 1).await;
    assert_eq!(host.status_of("library").unwrap().in_flight, 0);
    ended(&host, &library, 1).await;
}

#[tokio::test(start_paused = true)]
async fn poll_over_the_limit_is_rejected() {
    let host = polling(&Library::new(), None).await;
    for n in 1..=32 {
        let begun = data(&host, "SubscribePolling", resource(None)).await;
        assert_eq!(begun["subscriptionId"], format!("poll-{n}"));
    }
    let refused = complaint(&host, "SubscribePolling", resource(None)).await;
    assert!(
        refused.contains("limit of 32 polling subscriptions is reached") && refused.contains("UnsubscribePolling"),
        "{refused}"
    );
    call(&host, "UnsubscribePolling", json!({ "subscriptionId": "poll-7" })).await.unwrap();
    call(&host, "SubscribePolling", resource(None)).await.unwrap();
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn closing_or_dropping_host_ends_all_tasks() {
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for politely in [true, false] {
        let library = Library::new();
        let host = polling(&library, None).await;
        call(&host, "SubscribePolling", resource(None)).await.unwrap();
        call(&host, "SubscribePolling", tool()).await.unwrap();
        call(&host, "SubscribeMcpResource", json!({ "server": "library", "uri": "book:one" })).await.unwrap();
        library.shelves().silent = true;
        tokio::time::sleep(Duration::from_secs(10)).await;
        if politely {
            host.close().await;
            assert!(call(&host, "SubscribePolling", resource(None)).await.is_err());
        }
        drop(host);
        let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(alive(), before, "closed politely: {politely}");
    }
}
