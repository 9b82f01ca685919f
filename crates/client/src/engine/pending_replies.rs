//! Requests from the server that have not been answered yet.
//!
//! Each one is a task, because it may wait for the user. All of them end with the connection.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;
use wharf_wire::{RawJson, code};

use super::Engine;
use crate::counters::CounterKind;
use crate::services::BoxedFuture;

/// Maximum open requests of one server.
const MAX_OPEN_REQUESTS: usize = 32;

/// A server request that is answered later.
pub(crate) struct PendingReply {
    /// True if the user is prompted, so that deadlines must be paused.
    pub person: bool,
    pub work: BoxedFuture<Result<RawJson, RequestRefusal>>,
}

/// An error response to a server request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestRefusal {
    pub code: i64,
    pub message: String,
}

impl RequestRefusal {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// The open requests by their raw ids.
#[derive(Default)]
pub(super) struct OpenRequests(Mutex<HashMap<String, AbortHandle>>);

impl OpenRequests {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn abort_all(&self) {
        self.lock().drain().for_each(|(_, task)| task.abort());
    }
}

impl Drop for OpenRequests {
    fn drop(&mut self) {
        self.abort_all();
    }
}

impl Engine {
    /// Starts to answer a request on the connection's runtime.
    pub(super) fn begin_reply(&self, id: &str, pending_reply: PendingReply) {
        let Some(runtime) = &self.runtime else {
            return self.send_reply(
                id,
                Err(RequestRefusal::new(code::INTERNAL, "client has no runtime to handle the request")),
            );
        };
        let mut open = self.open_requests.lock();
        if open.len() >= MAX_OPEN_REQUESTS || open.contains_key(id) {
            drop(open);
            return self
                .send_reply(id, Err(RequestRefusal::new(code::INVALID_REQUEST, "too many concurrent requests")));
        }
        let (engine, own_id) = (self.me.clone(), id.to_owned());
        let task = runtime.spawn(async move {
            let pause = pending_reply.person.then(|| engine.upgrade().map(|engine| engine.pause_deadlines()));
            let outcome = pending_reply.work.await;
            drop(pause);
            let Some(engine) = engine.upgrade() else { return };
            if engine.open_requests.lock().remove(&own_id).is_some() {
                engine.send_reply(&own_id, outcome);
            }
        });
        open.insert(id.to_owned(), task.abort_handle());
    }

    /// Handles the server's cancellation of its request.
    pub(super) fn cancel_reply(&self, id: &str) {
        match self.open_requests.lock().remove(id) {
            Some(task) => task.abort(),
            None => self.counters.count(CounterKind::Unmatched),
        }
    }

    pub(super) fn send_reply(&self, id: &str, outcome: Result<RawJson, RequestRefusal>) {
        let text = match outcome {
            Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, result.as_str()),
            Err(RequestRefusal { code, message }) => {
                let message = serde_json::Value::from(message);
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
            }
        };
        self.send_message(&text);
    }

    /// Returns the total time deadlines have been paused, excluding a pause that is still active.
    pub fn paused_time(&self) -> Duration {
        Duration::from_nanos(self.paused_nanos.load(Ordering::Relaxed))
    }

    /// Pauses the deadlines of all calls until the guard is dropped.
    pub fn pause_deadlines(&self) -> DeadlinePause {
        self.table().pause_deadlines(Instant::now());
        DeadlinePause(self.me.clone())
    }
}

/// Guard that pauses all deadlines of the connection.
pub(crate) struct DeadlinePause(Weak<Engine>);

impl Drop for DeadlinePause {
    fn drop(&mut self) {
        if let Some(engine) = self.0.upgrade() {
            let paused = engine.table().resume_deadlines(Instant::now());
            engine.paused_nanos.fetch_add(u64::try_from(paused.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
            engine.link.wake();
        }
    }
}
