//! Tasks: calls that outlive their request.
//!
//! Owns the task table and the state of each task. [`wire`] serialises tasks for the two revisions that have them.
//! [`run`] executes them.

mod run;
pub mod wire;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value, json};
use wharf_spec::Timestamp;

use super::call_signal::CallSignal;
use super::client_link::{CallContext, CallStop};
use super::message::{INTERNAL_ERROR, RpcError, lock_unpoisoned};
use super::rounds::nonce;

pub use run::TaskServices;

/// Maximum number of tasks. The oldest finished one is removed.
const MAX_TASKS: usize = 64;

/// Default lifetime of a task.
const DEFAULT_TTL_MS: u64 = 600_000;

/// Work of a task.
pub type TaskWork = Box<dyn FnOnce(&mut dyn CallContext) -> Result<Value, CallStop> + Send>;

#[derive(Default)]
pub struct TaskTable {
    /// All tasks, oldest first.
    all: Mutex<Vec<Arc<DemoTask>>>,
}

/// One task.
pub struct DemoTask {
    id: String,
    created: String,
    born: Instant,
    ttl_ms: u64,
    state: Mutex<DemoTaskState>,
    alarm: Arc<CallSignal>,
}

struct DemoTaskState {
    phase: DemoTaskPhase,
    message: String,
    updated: String,
    /// Threads to wake at the end.
    watchers: Vec<Arc<CallSignal>>,
}

/// Phase of a task.
#[derive(Debug, Clone)]
enum DemoTaskPhase {
    Working,
    /// Open questions by key, as requests.
    InputRequired(Map<String, Value>),
    Completed(Value),
    /// JSON-RPC error object.
    Failed(Value),
    Cancelled,
}

/// Key under which a watcher receives the end.
const ENDED: &str = "ended";

impl TaskTable {
    /// Creates a task with a lifetime of `ttl_ms`.
    ///
    /// # Errors
    ///
    /// Returns a sentence if too many tasks are running.
    pub fn create(&self, ttl_ms: Option<u64>) -> Result<Arc<DemoTask>, String> {
        let task = Arc::new(DemoTask::new(ttl_ms.unwrap_or(DEFAULT_TTL_MS)));
        self.insert(&task)?;
        Ok(task)
    }

    fn insert(&self, task: &Arc<DemoTask>) -> Result<(), String> {
        let mut all = lock_unpoisoned(&self.all);
        all.retain(|known| !(known.has_ended() && known.born.elapsed() > Duration::from_millis(known.ttl_ms)));
        if all.len() >= MAX_TASKS {
            let oldest = all.iter().position(|known| known.has_ended());
            all.remove(oldest.ok_or_else(|| format!("{MAX_TASKS} tasks are under way already; try again later."))?);
        }
        all.push(Arc::clone(task));
        Ok(())
    }

    /// Finds the task that `params` name.
    ///
    /// # Errors
    ///
    /// Fails with invalid params for an unknown task.
    pub fn find(&self, params: &Map<String, Value>) -> Result<Arc<DemoTask>, RpcError> {
        let id = params.get("taskId").and_then(Value::as_str);
        let id = id.ok_or_else(|| RpcError::invalid_params("`taskId` must be a string"))?;
        let found = lock_unpoisoned(&self.all).iter().find(|task| task.id == id).cloned();
        found.ok_or_else(|| RpcError::invalid_params(format!("unknown task `{id}`")))
    }

    pub fn has(&self, id: &str) -> bool {
        lock_unpoisoned(&self.all).iter().any(|task| task.id == id)
    }

    /// Returns all tasks in the format of 2025-11-25.
    pub fn list(&self) -> Vec<Value> {
        lock_unpoisoned(&self.all).iter().map(|task| wire::handshake_task(task)).collect()
    }

    /// Cancels all tasks.
    pub fn close(&self) {
        for task in lock_unpoisoned(&self.all).drain(..) {
            task.cancel();
        }
    }
}

/// Starts a task on its own thread.
pub fn start_task(task: Arc<DemoTask>, play: TaskWork, crew: TaskServices) {
    let worker = Arc::clone(&task);
    let thread = thread::Builder::new().name("demo-task".to_owned());
    if let Err(error) = thread.spawn(move || run::run_task(play, crew, worker)) {
        let error = RpcError::new(INTERNAL_ERROR, format!("no thread could be started: {error}"));
        task.enter(DemoTaskPhase::Failed(error.to_json()), "The work never began.");
    }
}

impl DemoTask {
    fn new(ttl_ms: u64) -> Self {
        let now = format!("{:.0}", Timestamp(SystemTime::now()));
        let message = "The work has begun.".to_owned();
        let state =
            DemoTaskState { phase: DemoTaskPhase::Working, message, updated: now.clone(), watchers: Vec::new() };
        Self {
            id: format!("task-{:016x}", nonce()),
            created: now,
            born: Instant::now(),
            ttl_ms,
            state: Mutex::new(state),
            alarm: Arc::default(),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Cancels the task. Returns whether it was still running.
    pub fn cancel(&self) -> bool {
        let is_first = self.enter(DemoTaskPhase::Cancelled, "The work was called off.");
        self.alarm.cancel();
        is_first
    }

    /// Delivers answers to the task. Ignores answers without an open question.
    pub fn answer(&self, given: &Map<String, Value>) {
        let mut state = lock_unpoisoned(&self.state);
        if let DemoTaskPhase::InputRequired(open) = &mut state.phase {
            for (key, answer) in given {
                if open.remove(key).is_some() {
                    self.alarm.deliver(key, answer.clone());
                }
            }
        }
    }

    /// Waits until the task ends or `watcher` rings. Returns whether the task ended.
    pub fn wait_for_end(&self, watcher: &Arc<CallSignal>) -> bool {
        {
            let mut state = lock_unpoisoned(&self.state);
            if state.phase.is_end() {
                return true;
            }
            state.watchers.push(Arc::clone(watcher));
        }
        watcher.wait_for_answer(ENDED).is_some()
    }

    fn has_ended(&self) -> bool {
        lock_unpoisoned(&self.state).phase.is_end()
    }

    /// Changes the phase, unless the task has ended. Returns whether it changed.
    fn enter(&self, phase: DemoTaskPhase, message: &str) -> bool {
        let mut state = lock_unpoisoned(&self.state);
        if state.phase.is_end() {
            return false;
        }
        state.phase = phase;
        state.message = message.to_owned();
        state.updated = format!("{:.0}", Timestamp(SystemTime::now()));
        if state.phase.is_end() {
            for watcher in state.watchers.drain(..) {
                watcher.deliver(ENDED, json!(true));
            }
        }
        true
    }
}

impl DemoTaskPhase {
    fn is_end(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Failed(_) | Self::Cancelled)
    }
}
