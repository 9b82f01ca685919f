//! Servers at work over HTTP: how they get on, what they log, and how they are stopped.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wharf_client::{ClientServices, Direction, RequestOptions};
use wharf_wire::LogLevel;

use crate::crew::Log;
use crate::peer::{raw, text};
use crate::quay::{Visit, each, over_http};

#[tokio::test]
async fn progress_is_ordered_and_precedes_the_result() {
    each(&over_http(), ClientServices::default(), async |quay| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let options = RequestOptions::default()
            .progress(move |step| sink.lock().unwrap().push((step.progress, step.total, step.message)));
        let arguments = raw(&json!({"steps": 4, "wait_ms": 5}));
        let result = quay.connection.call_tool("slow", &arguments, options).await.unwrap();
        assert_eq!(text(&result), "4 steps", "{}", quay.side);
        let step = |n: u8| (f64::from(n), Some(4.0), Some(format!("step {n}")));
        assert_eq!(*seen.lock().unwrap(), [1, 2, 3, 4].map(step), "{}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn logs_are_delivered_from_the_requested_level() {
    let log = Log::default();
    each(&over_http(), ClientServices::default().logs(LogLevel::Warning, log.clone()), async |quay| {
        quay.call("log", json!({"level": "info", "message": "calm"})).await;
        quay.call("log", json!({"level": "error", "message": "fog ⚓"})).await;
        // Beside the answer there is a stream of the server's own, and neither waits for the other.
        quay.wire.until(|wire| wire.all(Direction::Received, "notifications/message").iter().any(is_fog)).await;
        quay.connection.ping(RequestOptions::default()).await.unwrap();
        let fog = (LogLevel::Error, Some("quay".to_owned()), json!({"message": "fog ⚓"}));
        assert_eq!(log.entries(), [fog], "{}", quay.side);
    })
    .await;
}

fn is_fog(params: &Value) -> bool {
    params["level"] == "error"
}

#[tokio::test]
async fn cancelled_call_is_stopped_on_the_server() {
    each(&over_http(), ClientServices::default(), async |quay| {
        let options = RequestOptions::default().progress(|_| {});
        let arguments = raw(&json!({"steps": 3000}));
        tokio::select! {
            result = quay.connection.call_tool("slow", &arguments, options) => panic!("{}: {result:?}", quay.side),
            () = quay.wire.until(|wire| wire.received("notifications/progress") > 0) => {}
        }
        quay.web().says("stopped").await;
        // Closing the answer says it in the stateless era, and nothing else does (2026-07-28, basic/transports).
        let word = quay.wire.sent("notifications/cancelled");
        assert_eq!(word, usize::from(!quay.side.is_stateless()), "{}", quay.side);
        assert_eq!(quay.call("echo", json!({"text": "ahoy"})).await, "ahoy", "{}", quay.side);
        excuse_what_was_under_way(quay);
    })
    .await;
}

/// Progress may cross our word, and so may an answer.
fn excuse_what_was_under_way(quay: &Visit) {
    let counters = quay.connection.counters();
    let mut excused = quay.excused.lock().unwrap();
    excused.stray_progress = counters.stray_progress;
    excused.unmatched = counters.unmatched.min(1);
}
