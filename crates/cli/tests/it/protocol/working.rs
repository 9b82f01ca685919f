//! Work that takes its time: progress and tasks, the latter in both their forms.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wharf_client::{CallError, RequestOptions, Started, TaskHandle, TaskOptions};
use wharf_wire::{ElicitationResponse, RawJson, Revision, TaskStatus};

use super::host::{ALL, Harbour, LATEST, open, open_with, text};

async fn start(harbour: &Harbour, arguments: Value) -> Box<TaskHandle> {
    let arguments = RawJson::from_value(&arguments).unwrap();
    match harbour.connection.start_task("unload_ship", &arguments, TaskOptions::default()).await.unwrap() {
        Started::Task(task) => task,
        Started::Finished(result) => panic!("no task was made: {}", result.raw.as_str()),
    }
}

#[tokio::test]
async fn progress_precedes_the_result() {
    for revision in ALL {
        let harbour = open(revision).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let options = RequestOptions::default().progress(move |progress| sink.lock().unwrap().push(progress.progress));
        let arguments = RawJson::parse(r#"{"seconds":0.06,"steps":3}"#).unwrap();
        let result = harbour.connection.call_tool("slow", &arguments, options).await.unwrap();
        assert!(!result.is_error, "{revision}: {}", result.raw.as_str());
        let seen = seen.lock().unwrap().clone();
        assert!(!seen.is_empty() && seen.is_sorted(), "{revision}: {seen:?}");
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn task_is_followed_to_completion() {
    for &revision in LATEST {
        let harbour = open(revision).await;
        let task = start(&harbour, json!({ "containers": 3, "interval_ms": 20 })).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let watch = Arc::new(move |task: &wharf_wire::Task| sink.lock().unwrap().push(task.status));
        let result = task.finish(Some(watch)).await.unwrap();
        let data: Value = serde_json::from_str(result.structured.unwrap().as_str()).unwrap();
        assert_eq!(data["unloaded"], 3, "{revision}");
        let seen = seen.lock().unwrap().clone();
        assert_eq!(seen.first(), Some(&TaskStatus::Working), "{revision}");
        assert_eq!(seen.last(), Some(&TaskStatus::Completed), "{revision}");
        // It is found again by its id.
        let again = harbour.connection.task(task.id());
        assert_eq!(again.refresh().await.unwrap().status, TaskStatus::Completed, "{revision}");
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn task_can_request_input() {
    for &revision in LATEST {
        let signature = ElicitationResponse::Accept(Some(RawJson::parse(r#"{"name":"Ada"}"#).unwrap()));
        let harbour = open_with(revision, [signature]).await;
        let task = start(&harbour, json!({ "containers": 1, "interval_ms": 5, "ask": true })).await;
        let result = task.finish(None).await.unwrap();
        assert!(text(&result).contains("Ada"), "{revision}: {}", result.raw.as_str());
        assert_eq!(harbour.questions(), ["demo form"], "{revision}");
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn task_is_cancelled_by_its_own_method() {
    for &revision in LATEST {
        let harbour = open(revision).await;
        let task = start(&harbour, json!({ "containers": 1000, "interval_ms": 1000 })).await;
        task.cancel().await.unwrap();
        let outcome = task.finish(None).await;
        assert!(outcome.is_err(), "{revision}");
        assert_eq!(task.refresh().await.unwrap().status, TaskStatus::Cancelled, "{revision}");
        assert_eq!(
            harbour.sent("notifications/cancelled"),
            usize::from(revision == Revision::V2026_07_28),
            "{revision}"
        );
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn plain_call_follows_the_task_it_becomes() {
    let harbour = open(Revision::V2026_07_28).await;
    let result = harbour.call("unload_ship", json!({ "containers": 2, "interval_ms": 10 })).await;
    let data: Value = serde_json::from_str(result.structured.unwrap().as_str()).unwrap();
    assert_eq!((data["unloaded"].clone(), harbour.sent("tools/call")), (json!(2), 1));
    assert!(harbour.sent("tasks/get") + harbour.sent("subscriptions/listen") > 0);
    harbour.connection.close().await;
}

#[tokio::test]
async fn unknown_task_is_an_error() {
    for &revision in LATEST {
        let harbour = open(revision).await;
        let outcome = harbour.connection.task("no such task").refresh().await;
        assert!(matches!(outcome, Err(CallError::Task(_))), "{revision}: {outcome:?}");
        harbour.connection.close().await;
    }
}
