//! Tasks that outlive their request: the tasks extension (2026-07-28) and the tasks of 2025-11-25, read into one type.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::input::{InputRequest, input_requests};
use crate::{JsonLimits, RpcError, View};
use wharf_json::{JsonDecodeError, RawJson};

/// Status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// In progress.
    Working,
    /// Waiting for input.
    InputRequired,
    /// Finished with a result.
    Completed,
    /// Failed.
    Failed,
    /// Cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Reports whether the status is terminal.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Working => "working",
            Self::InputRequired => "input required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}

/// Snapshot of a task, as reported by its server.
#[derive(Debug, Clone)]
pub struct Task {
    /// Id for polling the task.
    pub id: String,
    /// Current status.
    pub status: TaskStatus,
    /// Current activity: untrusted text.
    pub message: Option<String>,
    /// Retention time on the server; `None` if unspecified or unlimited.
    pub ttl: Option<Duration>,
    /// Interval between polls.
    pub poll: Option<Duration>,
    /// Pending input requests (2026-07-28).
    pub requests: Vec<InputRequest>,
    /// Result of the task, if included (2026-07-28).
    pub result: Option<RawJson>,
    /// Error of the task, if included (2026-07-28).
    pub error: Option<RpcError>,
    /// The complete description as received.
    pub raw: RawJson,
}

impl View for Task {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            /// The wrapper used by task-creating responses in 2025-11-25.
            #[serde(borrow, default)]
            task: Option<&'a RawValue>,
        }
        let shape: Shape = raw.decode(bounds)?;
        match shape.task {
            Some(task) => parse_task(raw.slice_part(task), bounds),
            None => parse_task(raw, bounds),
        }
    }
}

fn parse_task(raw: RawJson, bounds: &JsonLimits) -> Result<Task, JsonDecodeError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Shape<'a> {
        task_id: String,
        status: TaskStatus,
        #[serde(default)]
        status_message: Option<String>,
        #[serde(default, alias = "ttl")]
        ttl_ms: Option<f64>,
        #[serde(default, alias = "pollInterval")]
        poll_interval_ms: Option<f64>,
        #[serde(borrow, default)]
        input_requests: Option<&'a RawValue>,
        #[serde(borrow, default)]
        result: Option<&'a RawValue>,
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
    }
    let shape: Shape = raw.decode(bounds)?;
    let millis = |number: f64| Duration::try_from_secs_f64(number / 1000.0).ok();
    let requests = shape.input_requests.map(|list| input_requests(&raw.slice_part(list), bounds)).transpose()?;
    let error = shape.error.map(|error| RpcError::from_raw(raw.slice_part(error), bounds)).transpose()?;
    Ok(Task {
        id: shape.task_id,
        status: shape.status,
        message: shape.status_message,
        ttl: shape.ttl_ms.and_then(millis),
        poll: shape.poll_interval_ms.and_then(millis),
        requests: requests.unwrap_or_default(),
        result: shape.result.map(|result| raw.slice_part(result)),
        error,
        raw,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_task_forms_are_equivalent() {
        for text in [
            r#"{"task":{"taskId":"t","status":"working","ttl":60000,"pollInterval":50}}"#,
            r#"{"resultType":"task","taskId":"t","status":"working","ttlMs":60000,"pollIntervalMs":50}"#,
        ] {
            let task = Task::from_raw(RawJson::parse(text).unwrap(), &JsonLimits::default()).unwrap();
            assert_eq!((task.id.as_str(), task.status), ("t", TaskStatus::Working));
            assert_eq!((task.ttl, task.poll), (Some(Duration::from_secs(60)), Some(Duration::from_millis(50))));
        }
        for text in [r#"{"taskId":"t","status":"dreaming"}"#, r#"{"status":"working"}"#] {
            assert!(Task::from_raw(RawJson::parse(text).unwrap(), &JsonLimits::default()).is_err(), "{text}");
        }
        let odd =
            r#"{"taskId":"t","status":"failed","ttlMs":null,"pollIntervalMs":-5,"error":{"code":3,"message":"m"}}"#;
        let task = Task::from_raw(RawJson::parse(odd).unwrap(), &JsonLimits::default()).unwrap();
        assert_eq!((task.ttl, task.poll, task.error.unwrap().code), (None, None, 3));
    }
}
