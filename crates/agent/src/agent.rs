//! The agent and its runs. A driver task executes the effects of a [run](crate::run)'s state machine.

mod calls;
mod driver;
mod response_stream;
mod run_budget;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinError, JoinSet};
use wharf_tools::{AgentNote, Registry, ToolCaller};

use crate::conversation::{Conversation, TurnBlock};
use crate::provider::{Model, ReasoningEffort};
use crate::run::RunEvent;
use driver::AgentDriver;

pub(crate) use run_budget::{ModelUsage, RunBudget, SubAgentHandle};

/// Capacity of a run's event channel. A full channel pauses the run.
const EVENT_CAPACITY: usize = 64;

/// Default share of the context for tool definitions.
const TOOL_SHARE_PERCENT: u64 = 5;
/// Minimum default of the tokens for tool definitions: small models choose well among a few tools and search badly.
const MIN_TOOL_TOKENS: u64 = 4_000;

/// Limits of one run of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// Size of the model's context window in tokens.
    pub context: u64,
    /// Maximum tokens of tool definitions. Above it tools are deferred and the model searches for them. `None` means 5 %
    /// of the context, and at least 4,000 tokens or half of a smaller context.
    pub tool_tokens: Option<u64>,
    /// Maximum requests to the model, including those of sub-agents.
    pub requests: u32,
    /// Maximum concurrent calls of one provider's tools. Further calls are queued.
    pub calls_at_once: usize,
    /// Number of identical calls with identical results after which the call is refused.
    pub repeats: u32,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self { context: 200_000, tool_tokens: None, requests: 100, calls_at_once: 16, repeats: 3 }
    }
}

impl AgentLimits {
    /// Returns the maximum tokens of tool definitions.
    fn max_tool_tokens(&self) -> u64 {
        let share = self.context / 100 * TOOL_SHARE_PERCENT;
        self.tool_tokens.unwrap_or_else(|| share.max(MIN_TOOL_TOKENS.min(self.context / 2)))
    }
}

/// An agent that holds conversations with one model over one registry. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    model: Model,
    registry: Arc<Registry>,
    limits: AgentLimits,
    caller: ToolCaller,
    effort: Option<ReasoningEffort>,
    /// Configuration as a sub-agent. `None` gives access to all tools of the registry.
    sub_agent: Option<SubAgentConfig>,
}

/// Restrictions of an agent that runs as a sub-agent.
#[derive(Clone)]
pub(crate) struct SubAgentConfig {
    /// Names of the tools it may call.
    pub tools: Arc<BTreeSet<Arc<str>>>,
    /// Remaining requests of the parent run, if there is one.
    pub requests_left: Option<Arc<AtomicU32>>,
}

/// A run in progress. Dropping it cancels the run and loses the turns added since its start.
pub struct AgentRun {
    /// `None` after the final event.
    events: Option<mpsc::Receiver<RunEvent>>,
    cancelled: Arc<Notify>,
    /// Holds the single task of the run, which is aborted on drop.
    task: JoinSet<Conversation>,
}

impl Agent {
    /// Creates an agent that calls tools as `ToolCaller::agent()`.
    pub fn new(model: Model, registry: Arc<Registry>, limits: AgentLimits) -> Self {
        Self { model, registry, limits, caller: ToolCaller::agent(), effort: None, sub_agent: None }
    }

    /// Sets the reasoning effort.
    pub fn with_effort(self, effort: Option<ReasoningEffort>) -> Self {
        Self { effort, ..self }
    }

    /// Turns this agent into a sub-agent with only the given tools and requests. A sub-agent receives no notes: those
    /// go to the agent that talks to the person.
    pub(crate) fn into_sub_agent(self, caller: ToolCaller, sub_agent: SubAgentConfig) -> Self {
        Self { caller, sub_agent: Some(sub_agent), ..self }
    }

    /// Starts a run with the person's message. Must be called within a Tokio runtime, because the run is a task.
    ///
    /// A message that repeats the last unanswered one is not added again. An empty message continues the conversation:
    /// the model answers the last message, or receives a request to go on.
    pub fn start_run(&self, conversation: Conversation, user_input: Vec<TurnBlock>) -> AgentRun {
        let (sender, events) = mpsc::channel(EVENT_CAPACITY);
        let cancelled = Arc::<Notify>::default();
        let mut task = JoinSet::new();
        task.spawn(AgentDriver::new(self.clone(), sender, cancelled.clone()).run(conversation, user_input));
        AgentRun { events: Some(events), cancelled, task }
    }

    fn take_notes(&self) -> Vec<AgentNote> {
        if self.sub_agent.is_some() { Vec::new() } else { self.registry.notes().take_all() }
    }

    fn may_call(&self, tool: &str) -> bool {
        self.sub_agent.as_ref().is_none_or(|sub_agent| sub_agent.tools.contains(tool))
    }

    /// Returns the request budget of a run: the parent run's if there is one, otherwise its own.
    fn request_budget(&self) -> Arc<AtomicU32> {
        let shared = self.sub_agent.as_ref().and_then(|sub_agent| sub_agent.requests_left.clone());
        shared.unwrap_or_else(|| Arc::new(AtomicU32::new(self.limits.requests)))
    }
}

impl AgentRun {
    /// Returns the next event, or `None` after [`RunEvent::Ended`]. Cancel-safe.
    pub async fn next_event(&mut self) -> Option<RunEvent> {
        let event = self.events.as_mut()?.recv().await;
        if matches!(event, None | Some(RunEvent::Ended(_))) {
            self.events = None;
        }
        event
    }

    /// Requests cancellation. Pending tool calls are cancelled and recorded as such in the conversation. Does not wait:
    /// [`RunEvent::Ended`] still follows.
    pub fn cancel(&mut self) {
        self.cancelled.notify_one();
    }

    /// Waits for the end of the run and returns the conversation, which is well-formed however the run ended. Events
    /// that were not received are discarded.
    pub async fn finish(mut self) -> Conversation {
        self.events = None;
        match self.task.join_next().await {
            Some(Ok(conversation)) => conversation,
            Some(Err(error)) => recover_from_join_error(error),
            None => Conversation::default(),
        }
    }
}

/// Resumes a panic of the task. A cancelled task means that the runtime is shutting down: returns an empty
/// conversation.
fn recover_from_join_error(error: JoinError) -> Conversation {
    match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Conversation::default(),
    }
}

#[cfg(test)]
mod tests;
