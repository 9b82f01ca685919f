//! Servers at work: what they log, how they get on, and how they are stopped.

use std::sync::{Arc, Mutex};

use serde_json::json;
use wharf_client::{CallError, ClientServices, Direction, RequestOptions};
use wharf_wire::LogLevel;

use crate::crew::Log;
use crate::peer::{raw, text};
use crate::quay::{Sdk, Visit, all, each};

#[tokio::test]
async fn logs_are_delivered_from_the_requested_level() {
    let log = Log::default();
    each(&all(), ClientServices::default().logs(LogLevel::Warning, log.clone()), async |quay| {
        quay.call("log", json!({"level": "info", "message": "calm"})).await;
        // Also from the Python SDK 2, which sends everything in the handshake era.
        assert!(log.entries().is_empty(), "{}", quay.side);
        quay.call("log", json!({"level": "error", "message": "fog ⚓"})).await;
        let fog = (LogLevel::Error, Some("quay".to_owned()), json!({"message": "fog ⚓"}));
        assert_eq!(log.entries(), [fog], "{}", quay.side);
        let set = quay.connection.set_log_level(LogLevel::Debug).await;
        if quay.side.is_stateless() {
            assert!(matches!(set, Err(CallError::Unsupported(_))), "{}: {set:?}", quay.side);
            return;
        }
        set.unwrap();
        quay.call("log", json!({"level": "debug", "message": "a gull"})).await;
        assert_eq!(log.entries()[0].0, LogLevel::Debug, "{}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn progress_is_ordered_and_precedes_the_result() {
    each(&all(), ClientServices::default(), async |quay| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let options = RequestOptions::default()
            .progress(move |step| sink.lock().unwrap().push((step.progress, step.total, step.message)));
        let arguments = raw(&json!({"steps": 4, "wait_ms": 5}));
        let result = quay.connection.call_tool("slow", &arguments, options).await.unwrap();
        assert_eq!(text(&result), "4 steps");
        let step = |n: u8| (f64::from(n), Some(4.0), Some(format!("step {n}")));
        assert_eq!(*seen.lock().unwrap(), [1, 2, 3, 4].map(step), "{}", quay.side);
        nobody_logs_unasked(quay).await;
    })
    .await;
}

/// In the stateless era a server logs only to a request that says from which level on.
async fn nobody_logs_unasked(quay: &Visit) {
    quay.call("log", json!({"level": "error", "message": "fog"})).await;
    if quay.side.is_stateless() {
        assert_eq!(quay.wire.received("notifications/message"), 0, "{}", quay.side);
    }
}

#[tokio::test]
async fn cancelled_call_is_stopped_on_the_server() {
    each(&all(), ClientServices::default(), async |quay| {
        let options = RequestOptions::default().progress(|_| {});
        let arguments = raw(&json!({"steps": 500}));
        tokio::select! {
            result = quay.connection.call_tool("slow", &arguments, options) => panic!("{}: {result:?}", quay.side),
            () = quay.wire.until(|wire| wire.received("notifications/progress") > 0) => {}
        }
        assert_eq!(quay.call("echo", json!({"text": "ahoy"})).await, "ahoy");
        let cancelled = quay.wire.all(Direction::Sent, "notifications/cancelled");
        assert_eq!(cancelled.len(), 1, "{}", quay.side);
        let before = quay.wire.received("notifications/progress");
        quay.call("slow", json!({"steps": 5})).await;
        assert_eq!(quay.wire.received("notifications/progress"), before, "{}: it goes on", quay.side);
        excuse_what_was_under_way(quay);
    })
    .await;
}

/// Progress may cross our word; the Python SDK 1 answers what was withdrawn, with code 0.
fn excuse_what_was_under_way(quay: &Visit) {
    let counters = quay.connection.counters();
    let answered = quay.wire.errors(Direction::Received).iter().filter(|error| error["code"] == 0).count();
    assert_eq!(answered, usize::from(quay.side.sdk == Sdk::Python1), "{}", quay.side);
    let mut excused = quay.excused.lock().unwrap();
    excused.stray_progress = counters.stray_progress;
    excused.unmatched = counters.unmatched.min(answered as u64);
}
