//! Tasks of clients: calls whose results are fetched later, by the methods of 2025-11-25 or by the extension of
//! 2026-07-28.
//!
//! A task of the gateway is a call that runs in it. Whether its server makes a task of the call as well, and in which
//! revision, is a matter of the call. Ids are sealed for their owner: a key, or a session without one.

mod requests;
mod wire;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use wharf::RawJson;
use wharf::wire::{RpcError, code};

use crate::bridge::{TaskEnd, TaskStart, TaskTable};
use crate::conversation::StartedCall;
use crate::errors::rpc_error;
use crate::gateway::GatewayShared;
use crate::requests::ClientRequest;
use crate::route::SheetQuestions;
use crate::upstream::CallOutcome;

pub(crate) use requests::{answer_method, is_task_method, is_wanted};
pub(crate) use wire::{related_task, without_related_task};

/// Name of the tasks extension of 2026-07-28.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The tasks of a gateway.
#[derive(Default)]
pub(crate) struct GatewayTasks {
    table: Mutex<TaskTable<RunningTask>>,
}

/// The call of a task. Dropping it cancels the call.
struct RunningTask {
    questions: Arc<SheetQuestions>,
    supervisor: AbortHandle,
    /// Closed at the end of the task.
    ended: watch::Receiver<()>,
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

impl GatewayTasks {
    fn table(&self) -> MutexGuard<'_, TaskTable<RunningTask>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels and forgets the tasks of an owner that does not return.
    pub fn forget_owner(&self, owner: &str) {
        self.table().forget_owner(owner);
    }

    /// Cancels and forgets all tasks.
    pub fn close(&self) {
        self.table().clear();
    }
}

/// Makes a task of a started call and returns the result that announces it.
pub(crate) fn adopt(request: &ClientRequest, call: StartedCall) -> Result<RawJson, RpcError> {
    let (shared, now) = (&request.shared, Instant::now());
    let ttl = requests::wanted_ttl(request)?;
    let questions = call.questions();
    call.route().set_stream(None);
    let (begin, number) = oneshot::channel();
    let (running, ended) = watch::channel(());
    let supervising = supervise(Arc::downgrade(shared), call, number, running);
    let supervisor = shared.runtime.spawn(supervising).abort_handle();
    let start = TaskStart { owner: &request.client.task_owner, ttl, now, time: SystemTime::now() };
    let mut table = shared.tasks.table();
    let added = table.add(start, RunningTask { questions, supervisor, ended });
    let number = added.map_err(|_| rpc_error(code::INTERNAL, "too many tasks are in progress; try again later"))?;
    let entry = table.get(&request.client.task_owner, number);
    let announced = entry.and_then(|entry| wire::announcement(request, number, entry));
    let expires = entry.map_or(Duration::ZERO, |entry| entry.ttl);
    drop(table);
    let _ = begin.send(number);
    forget_later(shared, expires);
    announced.ok_or_else(|| rpc_error(code::INTERNAL, "the task's id cannot be sealed"))
}

/// Waits for the end of a call and records it.
async fn supervise(
    shared: Weak<GatewayShared>,
    mut call: StartedCall,
    number: oneshot::Receiver<u64>,
    _running: watch::Sender<()>,
) {
    let Ok(number) = number.await else { return };
    let end = match call.finish().await {
        Ok(CallOutcome::Complete(result)) => TaskEnd::Result(result),
        Ok(CallOutcome::InputRequired(_)) => {
            TaskEnd::Error(rpc_error(code::INTERNAL, "the server asked for input in a task that cannot be repeated"))
        }
        Err(error) => TaskEnd::Error(error),
    };
    if let Some(shared) = shared.upgrade() {
        shared.tasks.table().end(number, end, SystemTime::now());
    }
}

/// Forgets the task when its time is over.
fn forget_later(shared: &Arc<GatewayShared>, ttl: Duration) {
    let gateway = Arc::downgrade(shared);
    drop(shared.runtime.spawn(async move {
        tokio::time::sleep(ttl).await;
        if let Some(gateway) = gateway.upgrade() {
            gateway.tasks.table().forget_expired(Instant::now());
        }
    }));
}
