//! Concurrent tool calls of a run, one task each.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::WeakSender;
use tokio::task::{Id, JoinError, JoinSet};
use wharf_json::RawJson;
use wharf_tools::{
    CallProgress, NameLookup, PersonTime, ProgressSink, RefusalReason, RegistryCallError, ToolInvocation, ToolOutcome,
};

use super::{Agent, RunBudget};
use crate::run::{CallReport, RunEvent, report_from_outcome};

/// Maximum characters of a progress message.
const MAX_PROGRESS_CHARS: usize = 1000;

/// A queued tool call.
pub(super) struct QueuedCall {
    pub id: String,
    pub tool: String,
    pub arguments: RawJson,
}

/// Pending and running tool calls of a run. Dropping it cancels all of them.
pub(super) struct CallQueue {
    agent: Agent,
    /// Receives progress. Weak, because a tool may hold its sink for longer than the run.
    events: WeakSender<RunEvent>,
    run_budget: Arc<RunBudget>,
    /// Bounded by the maximum length of a response.
    waiting: VecDeque<QueuedCall>,
    tasks: JoinSet<Result<ToolOutcome, RegistryCallError>>,
    running: HashMap<Id, RunningCall>,
    /// Times that the started calls have waited for a person, by call id.
    person_times: HashMap<String, PersonTime>,
}

/// A call in progress.
struct RunningCall {
    id: String,
    provider: String,
}

impl CallQueue {
    pub fn new(agent: Agent, events: WeakSender<RunEvent>, run_budget: Arc<RunBudget>) -> Self {
        let (waiting, tasks) = (VecDeque::new(), JoinSet::new());
        Self { agent, events, run_budget, waiting, tasks, running: HashMap::new(), person_times: HashMap::new() }
    }

    pub fn add(&mut self, call: QueuedCall) {
        self.waiting.push_back(call);
        self.start_queued();
    }

    /// Waits for the next call to end. Waits forever if none is running. Cancel-safe.
    pub async fn next_finished(&mut self) -> (String, CallReport) {
        let Some(ended) = self.tasks.join_next_with_id().await else { return std::future::pending().await };
        let task = ended.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let id = self.running.remove(&task).map(|call| call.id).unwrap_or_default();
        self.start_queued();
        let report = match ended {
            Ok((_, Ok(outcome))) => report_from_outcome(&outcome),
            Ok((_, Err(failure))) => {
                let report = report_from_outcome(&failure.to_outcome());
                CallReport { is_refused: is_refused_by_person(&failure), ..report }
            }
            Err(_) => CallReport::error("internal error: the tool's task failed without a result"),
        };
        (id, report)
    }

    /// Returns the time that an ended call has waited for a person, once.
    pub fn take_person_time(&mut self, id: &str) -> Duration {
        self.person_times.remove(id).map(|time| time.total()).unwrap_or_default()
    }

    /// Cancels all calls and waits until they have ended. Sub-agents are shut down first, so that they can cancel their
    /// own calls before their tasks are aborted.
    pub async fn cancel_all(&mut self) {
        self.waiting.clear();
        self.run_budget.shut_down().await;
        self.tasks.shutdown().await;
        self.running.clear();
    }

    /// Starts queued calls in order. Calls of a provider at its limit stay queued and do not delay those of others.
    fn start_queued(&mut self) {
        let limit = self.agent.limits.calls_at_once.max(1);
        let mut counts: HashMap<String, usize> = HashMap::new();
        self.running.values().for_each(|call| *counts.entry(call.provider.clone()).or_default() += 1);
        for call in std::mem::take(&mut self.waiting) {
            let provider = self.provider_of(&call.tool);
            let count = counts.entry(provider.clone()).or_default();
            if *count < limit {
                *count += 1;
                self.start_call(call, provider);
            } else {
                self.waiting.push_back(call);
            }
        }
    }

    fn start_call(&mut self, QueuedCall { id, tool, arguments }: QueuedCall, provider: String) {
        let mut call = ToolInvocation::new(arguments, self.agent.caller.clone());
        call.progress = Some(progress_sink(&self.events, &id));
        self.person_times.insert(id.clone(), call.person_time.clone());
        let calling = execute_call(self.agent.clone(), tool, call);
        let task = self.tasks.spawn(self.run_budget.clone().scope(calling));
        self.running.insert(task.id(), RunningCall { id, provider });
    }

    /// Returns the provider of a tool. Unknown tools count as those of the embedding program.
    fn provider_of(&self, tool: &str) -> String {
        match self.agent.registry.snapshot().find(tool) {
            NameLookup::One(tool) => tool.description().provider().to_owned(),
            _ => String::new(),
        }
    }
}

async fn execute_call(agent: Agent, tool: String, call: ToolInvocation) -> Result<ToolOutcome, RegistryCallError> {
    agent.registry.call(&tool, call).await
}

fn is_refused_by_person(failure: &RegistryCallError) -> bool {
    matches!(failure, RegistryCallError::Denied(refusal) if matches!(refusal.reason, RefusalReason::SaidNo { .. }))
}

/// Returns a sink that forwards progress updates to the observer. Drops updates while the channel is full, so that no
/// tool waits for the observer.
fn progress_sink(events: &WeakSender<RunEvent>, id: &str) -> ProgressSink {
    let (events, id) = (events.clone(), id.to_owned());
    Arc::new(move |progress: CallProgress| {
        if let Some(events) = events.upgrade() {
            let message = progress.message.map(|text| text.chars().take(MAX_PROGRESS_CHARS).collect());
            let progress = CallProgress { message, ..progress };
            let _ = events.try_send(RunEvent::CallProgress { id: id.clone(), progress });
        }
    })
}
