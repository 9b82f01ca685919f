//! The methods of tasks.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::sync::watch;
use wharf::RawJson;
use wharf::wire::{Era, Revision, RpcError, code};

use super::wire::{description, detailed, open_id, seal_id, to_raw, with_related_task};
use crate::bridge::{CancelEffect, TaskEnd, TaskState};
use crate::errors::{invalid_params, rpc_error, unknown_method};
use crate::questions::ClientQuestion;
use crate::requests::ClientRequest;
use crate::responses::for_handshake_client;

/// Reports whether a client of this era uses a method of tasks.
pub(crate) fn is_task_method(era: Era, method: &str) -> bool {
    match method {
        "tasks/get" | "tasks/cancel" => true,
        "tasks/result" | "tasks/list" => era == Era::Handshake,
        "tasks/update" => era == Era::Stateless,
        _ => false,
    }
}

/// Reports whether a session asks for a task instead of the result of its call (2025-11-25).
pub(crate) fn is_wanted(request: &ClientRequest) -> bool {
    request.client.revision >= Some(Revision::V2025_11_25)
        && request.client.era == Era::Handshake
        && request.message.param("task").is_some_and(|task| task.is_object())
}

/// Returns the time that the client wants its task to be kept.
pub(super) fn wanted_ttl(request: &ClientRequest) -> Result<Option<Duration>, RpcError> {
    let task: Option<Value> = request.param("task")?;
    let ttl = task.and_then(|task| task["ttl"].as_f64()).filter(|ttl| *ttl >= 0.0);
    Ok(ttl.and_then(|ttl| Duration::try_from_secs_f64(ttl / 1000.0).ok()))
}

/// Answers a method of tasks.
pub(crate) async fn answer_method(request: &ClientRequest) -> Result<RawJson, RpcError> {
    match (&*request.message.method(), request.client.era) {
        ("tasks/list", Era::Handshake) => Ok(list(request)),
        ("tasks/get", _) => get(request),
        ("tasks/result", Era::Handshake) => result(request).await,
        ("tasks/update", Era::Stateless) => update(request),
        ("tasks/cancel", _) => cancel(request),
        (method, _) => Err(unknown_method(method)),
    }
}

/// The task that a request names.
struct NamedTask {
    id: String,
    number: u64,
}

fn named(request: &ClientRequest) -> Result<NamedTask, RpcError> {
    let id: String = request.required("taskId")?;
    let number = open_id(request, &id).ok_or_else(unknown_task)?;
    Ok(NamedTask { id, number })
}

fn unknown_task() -> RpcError {
    invalid_params("unknown task: it does not exist, has expired, or belongs to another client")
}

fn list(request: &ClientRequest) -> RawJson {
    let table = request.shared.tasks.table();
    let tasks = table.list(&request.client.task_owner);
    let tasks =
        tasks.filter_map(|(number, entry)| Some(description(&seal_id(request, number)?, entry, request.client.era)));
    to_raw(&json!({ "tasks": tasks.collect::<Vec<_>>() }))
}

fn get(request: &ClientRequest) -> Result<RawJson, RpcError> {
    let NamedTask { id, number } = named(request)?;
    let table = request.shared.tasks.table();
    let entry = table.get(&request.client.task_owner, number).ok_or_else(unknown_task)?;
    Ok(match request.client.era {
        Era::Handshake => to_raw(&description(&id, entry, Era::Handshake)),
        Era::Stateless => detailed(&id, entry),
    })
}

fn cancel(request: &ClientRequest) -> Result<RawJson, RpcError> {
    let NamedTask { id, number } = named(request)?;
    let owner = &request.client.task_owner;
    let mut table = request.shared.tasks.table();
    match (table.cancel(owner, number, SystemTime::now()), request.client.era) {
        (CancelEffect::Unknown, _) => Err(unknown_task()),
        (CancelEffect::EndedBefore, Era::Handshake) => Err(invalid_params("the task has ended already")),
        (_, Era::Stateless) => Ok(RawJson::empty_object()),
        (CancelEffect::Cancelled, Era::Handshake) => {
            let entry = table.get(owner, number).ok_or_else(unknown_task)?;
            Ok(to_raw(&description(&id, entry, Era::Handshake)))
        }
    }
}

/// Takes answers to the questions of a task. Late and foreign ones are ignored.
fn update(request: &ClientRequest) -> Result<RawJson, RpcError> {
    let NamedTask { number, .. } = named(request)?;
    let responses = request.message.param("inputResponses").filter(RawJson::is_object);
    let responses = responses.ok_or_else(|| invalid_params("`inputResponses` must be an object"))?;
    let table = request.shared.tasks.table();
    let entry = table.get(&request.client.task_owner, number).ok_or_else(unknown_task)?;
    if let TaskState::Running(task) = &entry.state {
        task.questions.answer(&responses);
    }
    Ok(RawJson::empty_object())
}

/// Waits for the result of a task. Its questions are asked on the stream of this request, with the id of the task.
async fn result(request: &ClientRequest) -> Result<RawJson, RpcError> {
    let NamedTask { id, number } = named(request)?;
    loop {
        let (questions, mut ended) = {
            let table = request.shared.tasks.table();
            let entry = table.get(&request.client.task_owner, number).ok_or_else(unknown_task)?;
            match &entry.state {
                TaskState::Ended(end) => return final_result(&id, end),
                TaskState::Running(task) => (task.questions.clone(), task.ended.clone()),
            }
        };
        tokio::select! {
            () = wait_for_end(&mut ended) => {}
            (asked, question) = questions.next_question() => {
                let params = with_related_task(question.params.as_ref(), &id);
                let question = ClientQuestion { params: Some(params), ..question };
                tokio::select! {
                    () = wait_for_end(&mut ended) => {}
                    answer = request.questions.ask(&question, &*request.out) => questions.answer_one(asked, answer),
                }
            }
        }
    }
}

async fn wait_for_end(ended: &mut watch::Receiver<()>) {
    while ended.changed().await.is_ok() {}
}

fn final_result(id: &str, end: &TaskEnd) -> Result<RawJson, RpcError> {
    match end {
        TaskEnd::Result(result) => Ok(with_related_task(Some(&for_handshake_client(result.clone())), id)),
        TaskEnd::Error(error) => Err(error.clone()),
        TaskEnd::Cancelled => Err(rpc_error(code::INVALID_REQUEST, "the task was cancelled")),
    }
}
