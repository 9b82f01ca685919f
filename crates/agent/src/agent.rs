//! The agent: carries out what the state machine of a [run](crate::run) decides.

mod answering;
mod calls;
mod driver;
mod team;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinError, JoinSet};
use wharf_tools::{Caller, Note, Registry};

use crate::conversation::{Block, Conversation};
use crate::provider::{Effort, Model};
use crate::run::RunEvent;
use driver::Driver;

pub(crate) use team::{Member, Spent, Team};

/// Events that wait for whoever watches. Where there is no room, the model has to wait.
const EVENTS: usize = 64;

/// How much an agent may do in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// Tokens that fit into the model's context.
    pub context: u64,
    /// The share of the context that definitions of tools may take, in percent; above it the model searches for tools.
    pub tool_share: u32,
    /// Requests to the model, those of sub-agents included.
    pub requests: u32,
    /// Calls of tools that are under way at once; the others wait their turn.
    pub calls_at_once: usize,
    /// How often the same call with the same result is made before it is stopped.
    pub repeats: u32,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self { context: 200_000, tool_share: 5, requests: 100, calls_at_once: 16, repeats: 3 }
    }
}

/// Holds conversations with one model over one registry. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    model: Model,
    registry: Arc<Registry>,
    limits: AgentLimits,
    caller: Caller,
    effort: Option<Effort>,
    /// What a sub-agent has; without it, there are all tools of the registry.
    service: Option<Service>,
}

/// What an agent has that works for another.
#[derive(Clone)]
pub(crate) struct Service {
    /// The tools it may call.
    pub tools: Arc<BTreeSet<Arc<str>>>,
    /// The requests that are left to the one it works for, where that is a run.
    pub left: Option<Arc<AtomicU32>>,
}

/// A run under way. Dropped, it is cancelled, and what it said since it began is lost.
pub struct Run {
    /// Nothing once the end was told.
    events: Option<mpsc::Receiver<RunEvent>>,
    cancelled: Arc<Notify>,
    /// The one task of the run, which ends with it.
    task: JoinSet<Conversation>,
}

impl Agent {
    /// An agent that calls as `Caller::agent()`.
    pub fn new(model: Model, registry: Arc<Registry>, limits: AgentLimits) -> Self {
        Self { model, registry, limits, caller: Caller::agent(), effort: None, service: None }
    }

    /// The same, calling as somebody else.
    pub fn calling_as(self, caller: Caller) -> Self {
        Self { caller, ..self }
    }

    /// The same, thinking this much.
    pub fn with_effort(self, effort: Option<Effort>) -> Self {
        Self { effort, ..self }
    }

    /// The same, working for another agent: with no other tools and requests than these, and without the notes, which
    /// are for the one that speaks with the person.
    pub(crate) fn working_for_another(self, caller: Caller, service: Service) -> Self {
        Self { caller, service: Some(service), ..self }
    }

    /// Begins a run with what the person said. Needs a runtime: the run is a task of its own.
    ///
    /// Said again, the last words that were not answered are not added twice; where nothing is said, they are answered,
    /// or the model is asked to go on.
    pub fn start(&self, conversation: Conversation, said: Vec<Block>) -> Run {
        let (sender, events) = mpsc::channel(EVENTS);
        let cancelled = Arc::<Notify>::default();
        let mut task = JoinSet::new();
        task.spawn(Driver::new(self.clone(), sender, cancelled.clone()).run(conversation, said));
        Run { events: Some(events), cancelled, task }
    }

    fn notes(&self) -> Vec<Note> {
        if self.service.is_some() { Vec::new() } else { self.registry.notes().take() }
    }

    fn wants(&self, tool: &str) -> bool {
        self.service.as_ref().is_none_or(|service| service.tools.contains(tool))
    }

    /// The requests of a run: those of whom it works for, or its own.
    fn requests_left(&self) -> Arc<AtomicU32> {
        let shared = self.service.as_ref().and_then(|service| service.left.clone());
        shared.unwrap_or_else(|| Arc::new(AtomicU32::new(self.limits.requests)))
    }
}

impl Run {
    /// What happens next; nothing after [`RunEvent::Ended`]. Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> Option<RunEvent> {
        let event = self.events.as_mut()?.recv().await;
        if matches!(event, None | Some(RunEvent::Ended(_))) {
            self.events = None;
        }
        event
    }

    /// Asks the run to end: calls under way are withdrawn, and the conversation says so in their place. Does not wait;
    /// [`RunEvent::Ended`] comes all the same.
    pub fn cancel(&mut self) {
        self.cancelled.notify_one();
    }

    /// Waits for the end and gives the conversation back: whole, so that it can be gone on with whatever happened.
    /// Events that were not taken are dropped.
    pub async fn finish(mut self) -> Conversation {
        self.events = None;
        match self.task.join_next().await {
            Some(Ok(conversation)) => conversation,
            Some(Err(error)) => broken(error),
            None => Conversation::default(),
        }
    }
}

/// Nobody ends the task but the run itself, or a runtime that goes with everything.
fn broken(error: JoinError) -> Conversation {
    match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Conversation::default(),
    }
}

#[cfg(test)]
mod tests;
