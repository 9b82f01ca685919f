//! Wire formats of tasks in the two revisions that have them.

use serde_json::{Value, json};

use super::{DemoTask, DemoTaskPhase, DemoTaskState};
use crate::message::{INTERNAL_ERROR, RpcError, lock_unpoisoned};

pub const RELATED_TASK_KEY: &str = "io.modelcontextprotocol/related-task";

/// Suggested poll interval.
const POLL_INTERVAL_MS: u64 = 100;

/// Returns the task in the format of 2026-07-28, with its result, error or questions.
pub fn stateless_task(task: &DemoTask) -> Value {
    let state = lock_unpoisoned(&task.state);
    let mut detail = common_members(task, &state);
    detail["ttlMs"] = task.ttl_ms.into();
    detail["pollIntervalMs"] = POLL_INTERVAL_MS.into();
    match &state.phase {
        DemoTaskPhase::Working | DemoTaskPhase::Cancelled => {}
        DemoTaskPhase::InputRequired(open) => detail["inputRequests"] = open.clone().into(),
        DemoTaskPhase::Completed(result) => detail["result"] = result.clone(),
        DemoTaskPhase::Failed(error) => detail["error"] = error.clone(),
    }
    detail
}

/// Returns the task in the format of 2025-11-25, without its result.
pub fn handshake_task(task: &DemoTask) -> Value {
    let state = lock_unpoisoned(&task.state);
    let mut detail = common_members(task, &state);
    detail["ttl"] = task.ttl_ms.into();
    detail["pollInterval"] = POLL_INTERVAL_MS.into();
    if let DemoTaskPhase::Completed(result) = &state.phase
        && result["isError"] == true
    {
        // 2025-11-25 basic/utilities/tasks: a tool result with `isError` fails the task.
        detail["status"] = "failed".into();
    }
    detail
}

/// Returns the reply of `tasks/result` for a task that has ended (2025-11-25 basic/utilities/tasks).
pub fn task_outcome(task: &DemoTask) -> Result<Value, RpcError> {
    match &lock_unpoisoned(&task.state).phase {
        DemoTaskPhase::Completed(result) => {
            let mut result = result.clone();
            result["_meta"][RELATED_TASK_KEY] = json!({"taskId": task.id});
            Ok(result)
        }
        _ => Err(RpcError::new(INTERNAL_ERROR, format!("the task `{}` was cancelled", task.id))),
    }
}

fn common_members(task: &DemoTask, state: &DemoTaskState) -> Value {
    json!({
        "taskId": task.id,
        "status": status(&state.phase),
        "statusMessage": state.message,
        "createdAt": task.created,
        "lastUpdatedAt": state.updated,
    })
}

fn status(phase: &DemoTaskPhase) -> &'static str {
    match phase {
        DemoTaskPhase::Working => "working",
        DemoTaskPhase::InputRequired(_) => "input_required",
        DemoTaskPhase::Completed(_) => "completed",
        DemoTaskPhase::Failed(_) => "failed",
        DemoTaskPhase::Cancelled => "cancelled",
    }
}
