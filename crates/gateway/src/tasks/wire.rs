//! Tasks as JSON, in the words of each era.

use memchr::memmem;
use serde_json::{Value, json};
use wharf::RawJson;
use wharf::spec::Timestamp;
use wharf::wire::{Era, JsonLimits, object_members};

use super::RunningTask;
use crate::bridge::{TaskEnd, TaskEntry, TaskState};
use crate::requests::ClientRequest;

/// Interval at which clients should poll, in milliseconds.
const POLL_INTERVAL_MS: u64 = 500;

/// Member of `_meta` that names the task of a message (2025-11-25 basic/utilities/tasks).
pub(super) const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Seals the id of a task for its owner.
pub(super) fn seal_id(request: &ClientRequest, number: u64) -> Option<String> {
    request.shared.sealing_key.seal(&binding(request), &number.to_be_bytes())
}

/// Opens an id. `None` if it is not the id of a task of this owner.
pub(super) fn open_id(request: &ClientRequest, id: &str) -> Option<u64> {
    let content = request.shared.sealing_key.open(&binding(request), id)?;
    Some(u64::from_be_bytes(content.try_into().ok()?))
}

fn binding(request: &ClientRequest) -> Vec<u8> {
    [b"task ".as_slice(), request.client.task_owner.as_bytes()].concat()
}

/// Returns the result that announces a new task instead of the call's own.
pub(super) fn announcement(request: &ClientRequest, number: u64, entry: &TaskEntry<RunningTask>) -> Option<RawJson> {
    let id = seal_id(request, number)?;
    let task = description(&id, entry, request.client.era);
    Some(to_raw(&match request.client.era {
        Era::Handshake => json!({ "task": task }),
        Era::Stateless => {
            let mut task = task;
            task["resultType"] = "task".into();
            task
        }
    }))
}

/// Describes a task without its result.
pub(super) fn description(id: &str, entry: &TaskEntry<RunningTask>, era: Era) -> Value {
    let ttl = u64::try_from(entry.ttl.as_millis()).unwrap_or(u64::MAX);
    let (ttl_name, poll_name) = match era {
        Era::Handshake => ("ttl", "pollInterval"),
        Era::Stateless => ("ttlMs", "pollIntervalMs"),
    };
    json!({
        "taskId": id,
        "status": status(entry, era),
        "createdAt": Timestamp(entry.created).to_string(),
        "lastUpdatedAt": Timestamp(entry.updated).to_string(),
        ttl_name: ttl,
        poll_name: POLL_INTERVAL_MS,
    })
}

fn status(entry: &TaskEntry<RunningTask>, era: Era) -> &'static str {
    match &entry.state {
        TaskState::Running(task) if task.questions.has_open() => "input_required",
        TaskState::Running(_) => "working",
        TaskState::Ended(TaskEnd::Cancelled) => "cancelled",
        TaskState::Ended(TaskEnd::Error(_)) => "failed",
        // 2025-11-25 basic/utilities/tasks: a tool's own failure fails the task.
        TaskState::Ended(TaskEnd::Result(result)) if era == Era::Handshake && is_tool_error(result) => "failed",
        TaskState::Ended(TaskEnd::Result(_)) => "completed",
    }
}

fn is_tool_error(result: &RawJson) -> bool {
    let members = object_members(result, &JsonLimits::default()).unwrap_or_default();
    members.iter().any(|(key, value)| key == "isError" && value.as_str() == "true")
}

/// Describes a task with its questions, its result or its error (2026-07-28).
pub(super) fn detailed(id: &str, entry: &TaskEntry<RunningTask>) -> RawJson {
    let task = description(id, entry, Era::Stateless).to_string();
    let more = match &entry.state {
        TaskState::Running(running) if running.questions.has_open() => {
            format!(",\"inputRequests\":{}", running.questions.to_requests().as_str())
        }
        TaskState::Running(_) | TaskState::Ended(TaskEnd::Cancelled) => String::new(),
        TaskState::Ended(TaskEnd::Result(result)) => format!(",\"result\":{}", result.as_str()),
        TaskState::Ended(TaskEnd::Error(error)) => {
            let data = error.data.as_ref().map(|data| format!(",\"data\":{}", data.as_str())).unwrap_or_default();
            format!(",\"error\":{{\"code\":{},\"message\":{}{data}}}", error.code, json!(error.message))
        }
    };
    let task = task.strip_suffix('}').unwrap_or_default();
    RawJson::new_unchecked(format!("{task}{more}}}"))
}

/// Returns the id of the task that the parameters of a server's question name.
pub(crate) fn related_task(params: &RawJson) -> Option<String> {
    memmem::find(params.as_bytes(), RELATED_TASK.as_bytes())?;
    let params: Value = params.decode(&JsonLimits::default()).ok()?;
    params["_meta"][RELATED_TASK]["taskId"].as_str().map(str::to_owned)
}

/// Returns the parameters of a question without the task that they name.
pub(crate) fn without_related_task(params: &RawJson) -> RawJson {
    let bounds = JsonLimits::default();
    let members = object_members(params, &bounds).unwrap_or_default();
    let mut parts = Vec::new();
    for (key, value) in &members {
        if key != "_meta" {
            parts.push(format!("{}:{}", json!(key), value.as_str()));
            continue;
        }
        let meta = object_members(value, &bounds).unwrap_or_default();
        let kept = meta.iter().filter(|(key, _)| key != RELATED_TASK);
        let kept: Vec<String> = kept.map(|(key, value)| format!("{}:{}", json!(key), value.as_str())).collect();
        if !kept.is_empty() {
            parts.push(format!("\"_meta\":{{{}}}", kept.join(",")));
        }
    }
    RawJson::new_unchecked(format!("{{{}}}", parts.join(",")))
}

/// Adds the id of its task to a result or to the parameters of a question.
pub(super) fn with_related_task(object: Option<&RawJson>, id: &str) -> RawJson {
    let bounds = JsonLimits::default();
    let members = object.and_then(|object| object_members(object, &bounds).ok()).unwrap_or_default();
    let meta = members.iter().find(|(key, _)| key == "_meta").map(|(_, meta)| meta);
    let meta = meta.and_then(|meta| object_members(meta, &bounds).ok()).unwrap_or_default();
    let mut parts: Vec<String> = Vec::new();
    for (key, value) in meta.iter().filter(|(key, _)| key != RELATED_TASK) {
        parts.push(format!("{}:{}", json!(key), value.as_str()));
    }
    parts.push(format!("{}:{}", json!(RELATED_TASK), json!({ "taskId": id })));
    let mut text = format!("{{\"_meta\":{{{}}}", parts.join(","));
    for (key, value) in members.iter().filter(|(key, _)| key != "_meta") {
        text.push_str(&format!(",{}:{}", json!(key), value.as_str()));
    }
    text.push('}');
    RawJson::new_unchecked(text)
}

pub(super) fn to_raw(value: &Value) -> RawJson {
    RawJson::new_unchecked(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn related_task_replaces_another_one_and_keeps_the_rest() {
        let raw = RawJson::new_unchecked(
            r#"{"content":[1e400],"_meta":{"a":1,"io.modelcontextprotocol/related-task":{"taskId":"theirs"}}}"#,
        );
        let expected = r#"{"_meta":{"a":1,"io.modelcontextprotocol/related-task":{"taskId":"own"}},"content":[1e400]}"#;
        assert_eq!(with_related_task(Some(&raw), "own").as_str(), expected);
        let expected = r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"own"}}}"#;
        assert_eq!(with_related_task(None, "own").as_str(), expected);
    }
}
