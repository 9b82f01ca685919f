//! Work that outlives its request: the tasks of 2025-11-25 and the extension of 2026-07-28, by the same calls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use wharf_client::{CallError, ClientServices, RequestOptions, Started, TaskHandle, TaskOptions};
use wharf_wire::{Task, TaskStatus, TaskSupport};

use crate::crew::Person;
use crate::peer::{raw, text};
use crate::quay::{LENIENT, OLD, STATELESS, Sdk, Side, Visit, each};

const RUST: Side = STATELESS[2];

fn sides() -> [Side; 3] {
    [OLD[0], OLD[1], RUST]
}

#[tokio::test]
async fn task_is_followed_to_completion() {
    each(&sides(), ClientServices::default().tasks(), async |quay| {
        let task = start(quay, "brew", json!({"steps": 3})).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let watch = Arc::new(move |task: &Task| sink.lock().unwrap().push(task.status));
        let result = task.finish(Some(watch)).await.unwrap();
        assert_eq!(text(&result), "tea", "{}", quay.side);
        let seen = seen.lock().unwrap().clone();
        assert_eq!((seen.first(), seen.last()), (Some(&TaskStatus::Working), Some(&TaskStatus::Completed)));
        assert_eq!(task.latest().unwrap().message.as_deref(), Some("step 3"), "{}", quay.side);
        let told = quay.wire.received("notifications/tasks/status") > 0;
        assert_eq!(told, quay.side.sdk == Sdk::Python1, "{}", quay.side);
        assert_eq!(quay.connection.task(task.id()).refresh().await.unwrap().status, TaskStatus::Completed);
    })
    .await;
}

async fn start(quay: &Visit, tool: &str, arguments: Value) -> TaskHandle {
    let mut options = TaskOptions::default();
    options.ttl = Some(Duration::from_secs(30));
    match quay.connection.start_task(tool, &raw(&arguments), options).await {
        Ok(Started::Task(task)) => *task,
        Ok(Started::Finished(result)) => panic!("{}: {tool} is finished: {}", quay.side, text(&result)),
        Err(error) => panic!("{}: {tool}: {error}", quay.side),
    }
}

#[tokio::test]
async fn task_can_request_input() {
    let person = Person::accepts(json!({"milk": "oat"}));
    each(&sides(), ClientServices::default().tasks().elicitation(person.clone()), async |quay| {
        let task = start(quay, "brew_later", json!({"steps": 1, "ask": true})).await;
        let result: Value = serde_json::from_str(&text(&task.finish(None).await.unwrap())).unwrap();
        assert_eq!(result, json!({"action": "accept", "content": {"milk": "oat"}}), "{}", quay.side);
        assert_eq!(person.asked().len(), 1, "{}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn cancelled_task_does_not_complete() {
    each(&sides(), ClientServices::default().tasks(), async |quay| {
        let task = start(quay, "brew", json!({"steps": 500})).await;
        task.cancel().await.unwrap();
        let end = task.finish(None).await;
        assert!(matches!(&end, Err(CallError::Task(why)) if why.starts_with("cancelled")), "{}: {end:?}", quay.side);
        let unknown = quay.connection.task("nope").refresh().await;
        assert!(matches!(unknown, Err(CallError::Task(_))), "{}: {unknown:?}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn plain_call_follows_the_task_it_becomes() {
    each(&[RUST], ClientServices::default().tasks(), async |quay| {
        assert_eq!(quay.call("brew", json!({"steps": 2})).await, "tea");
        let failed = quay.try_call("brew", json!({"steps": 1, "fail": true})).await;
        assert!(matches!(&failed, Err(CallError::ErrorResponse(error)) if error.code == -32603), "{failed:?}");
        assert!(quay.wire.sent("tasks/get") > 1);
    })
    .await;
}

#[tokio::test]
async fn cancelled_plain_call_cancels_its_task() {
    each(&[RUST], ClientServices::default().tasks(), async |quay| {
        tokio::select! {
            outcome = quay.try_call("brew", json!({"steps": 500})) => panic!("{outcome:?}"),
            () = quay.wire.until(|wire| wire.sent("tasks/get") > 0) => {}
        }
        quay.call("echo", json!({"text": "ahoy"})).await;
        assert_eq!(quay.wire.sent("tasks/cancel"), 1);
        excuse_late_answers(quay);
    })
    .await;
}

/// The question after the task that was under way may be answered still.
fn excuse_late_answers(quay: &Visit) {
    let unmatched = quay.connection.counters().unmatched;
    assert!(unmatched <= 2, "{unmatched}");
    quay.excused.lock().unwrap().unmatched = unmatched;
}

#[tokio::test]
async fn task_only_tool_fails_without_a_task() {
    each(&[OLD[0], OLD[1], RUST], ClientServices::default(), async |quay| {
        let plain = quay.try_call("brew_later", json!({})).await;
        match (&plain, quay.side.is_stateless()) {
            (Ok(result), false) => assert!(result.is_error, "{}", text(result)),
            (Err(CallError::ErrorResponse(error)), true) => assert_eq!(error.code, -32021),
            _ => panic!("{}: {plain:?}", quay.side),
        }
        assert_eq!(quay.call("brew", json!({"steps": 1})).await, "tea", "{}", quay.side);
        let tools = quay.connection.list_tools().await.unwrap().items;
        let support = |name: &str| tools.iter().find(|tool| tool.name == name).unwrap().task_support;
        let words = (support("brew"), support("brew_later"), support("echo"));
        let old = (TaskSupport::Optional, TaskSupport::Required, TaskSupport::Forbidden);
        assert!(quay.side.is_stateless() || words == old, "{}: {words:?}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn unsupported_task_is_not_requested() {
    each(&LENIENT[..1], ClientServices::default().tasks(), async |quay| {
        let started = quay.connection.start_task("echo", &raw(&json!({"text": "x"})), TaskOptions::default()).await;
        assert!(matches!(started, Err(CallError::Unsupported("tasks"))), "{}", quay.side);
        assert_eq!(quay.wire.sent("tools/call"), 0);
        quay.connection.ping(RequestOptions::default()).await.unwrap();
    })
    .await;
}
