//! Calls that outlive their request: tasks, from their start to their end.
//!
//! Owns the table and what each task has come to. How a task is written on the wire, which the
//! two revisions that have tasks do differently, is in [`wire`]; how it asks and waits, in [`run`].

mod run;
pub mod wire;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value, json};

use super::alarm::Alarm;
use super::message::{INTERNAL_ERROR, RpcError, locked};
use super::resources::timestamp;
use super::rounds::nonce;
use super::talk::{Stop, Talk};

pub use run::Crew;

/// How many tasks are remembered. Those that have ended give way, the oldest first.
const MOST_TASKS: usize = 64;

/// For how long a task is remembered unless the client has a wish.
const USUAL_TTL_MS: u64 = 600_000;

/// What a task does.
pub type Play = Box<dyn FnOnce(&mut dyn Talk) -> Result<Value, Stop> + Send>;

#[derive(Default)]
pub struct Tasks {
    /// All tasks, the oldest first.
    all: Mutex<Vec<Arc<Task>>>,
}

/// One task.
pub struct Task {
    id: String,
    created: String,
    born: Instant,
    ttl_ms: u64,
    state: Mutex<State>,
    alarm: Arc<Alarm>,
}

struct State {
    phase: Phase,
    message: String,
    updated: String,
    /// Whom to wake at the end.
    watchers: Vec<Arc<Alarm>>,
}

/// How far a task is.
#[derive(Debug, Clone)]
enum Phase {
    Working,
    /// The questions by their key, as requests.
    InputRequired(Map<String, Value>),
    Completed(Value),
    /// The error as JSON-RPC writes it.
    Failed(Value),
    Cancelled,
}

/// The name under which a watcher is told of the end.
const ENDED: &str = "ended";

impl Tasks {
    /// Makes a task that is remembered for `ttl_ms`, or fails with the reason.
    pub fn create(&self, ttl_ms: Option<u64>) -> Result<Arc<Task>, String> {
        let task = Arc::new(Task::new(ttl_ms.unwrap_or(USUAL_TTL_MS)));
        self.remember(&task)?;
        Ok(task)
    }

    fn remember(&self, task: &Arc<Task>) -> Result<(), String> {
        let mut all = locked(&self.all);
        all.retain(|known| !(known.has_ended() && known.born.elapsed() > Duration::from_millis(known.ttl_ms)));
        if all.len() >= MOST_TASKS {
            let oldest = all.iter().position(|known| known.has_ended());
            all.remove(oldest.ok_or_else(|| format!("{MOST_TASKS} tasks are under way already; try again later."))?);
        }
        all.push(Arc::clone(task));
        Ok(())
    }

    /// The task that `params` name.
    pub fn find(&self, params: &Map<String, Value>) -> Result<Arc<Task>, RpcError> {
        let id = params.get("taskId").and_then(Value::as_str);
        let id = id.ok_or_else(|| RpcError::invalid_params("`taskId` must be a string"))?;
        let found = locked(&self.all).iter().find(|task| task.id == id).cloned();
        found.ok_or_else(|| RpcError::invalid_params(format!("unknown task `{id}`")))
    }

    pub fn has(&self, id: &str) -> bool {
        locked(&self.all).iter().any(|task| task.id == id)
    }

    /// All tasks as 2025-11-25 lists them.
    pub fn list(&self) -> Vec<Value> {
        locked(&self.all).iter().map(|task| wire::handshake(task)).collect()
    }

    /// Stops every task.
    pub fn close(&self) {
        for task in locked(&self.all).drain(..) {
            task.cancel();
        }
    }
}

/// Begins the work of a task, on a thread of its own.
pub fn begin(task: Arc<Task>, play: Play, crew: Crew) {
    let worker = Arc::clone(&task);
    let thread = thread::Builder::new().name("demo-task".to_owned());
    if let Err(error) = thread.spawn(move || run::carry_out(play, crew, worker)) {
        let error = RpcError::new(INTERNAL_ERROR, format!("no thread could be started: {error}"));
        task.enter(Phase::Failed(error.to_json()), "The work never began.");
    }
}

impl Task {
    fn new(ttl_ms: u64) -> Self {
        let now = timestamp(SystemTime::now());
        let message = "The work has begun.".to_owned();
        let state = State { phase: Phase::Working, message, updated: now.clone(), watchers: Vec::new() };
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

    /// Cancels the task; says whether it was still under way.
    pub fn cancel(&self) -> bool {
        let is_first = self.enter(Phase::Cancelled, "The work was called off.");
        self.alarm.ring();
        is_first
    }

    /// Hands answers to the task; those to questions that are not open are ignored.
    pub fn answer(&self, given: &Map<String, Value>) {
        let mut state = locked(&self.state);
        if let Phase::InputRequired(open) = &mut state.phase {
            for (key, answer) in given {
                if open.remove(key).is_some() {
                    self.alarm.deliver(key, answer.clone());
                }
            }
        }
    }

    /// Waits for the end of the task, or until `watcher` rings, and says whether the end came.
    pub fn ends_before(&self, watcher: &Arc<Alarm>) -> bool {
        {
            let mut state = locked(&self.state);
            if state.phase.is_end() {
                return true;
            }
            state.watchers.push(Arc::clone(watcher));
        }
        watcher.fetch(ENDED).is_some()
    }

    fn has_ended(&self) -> bool {
        locked(&self.state).phase.is_end()
    }

    /// Moves on, unless the task has ended: an end is for ever. Says whether it moved.
    fn enter(&self, phase: Phase, message: &str) -> bool {
        let mut state = locked(&self.state);
        if state.phase.is_end() {
            return false;
        }
        state.phase = phase;
        state.message = message.to_owned();
        state.updated = timestamp(SystemTime::now());
        if state.phase.is_end() {
            for watcher in state.watchers.drain(..) {
                watcher.deliver(ENDED, json!(true));
            }
        }
        true
    }
}

impl Phase {
    fn is_end(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Failed(_) | Self::Cancelled)
    }
}
