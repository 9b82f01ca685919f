//! Concurrent tool calls of a run, one task each.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc::WeakSender;
use tokio::task::{Id, JoinError, JoinSet};
use wharf_json::RawJson;
use wharf_tools::{CallProgress, ProgressSink, RegistryCallError, ToolInvocation, ToolOutcome};

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

/// Tool calls of one response. Dropping it cancels all of them.
pub(super) struct CallQueue {
    agent: Agent,
    /// Receives progress. Weak, because a tool may hold its sink for longer than the run.
    events: WeakSender<RunEvent>,
    team: Arc<RunBudget>,
    /// Bounded by the maximum length of a response.
    waiting: VecDeque<QueuedCall>,
    under_way: JoinSet<Result<ToolOutcome, RegistryCallError>>,
    ids: HashMap<Id, String>,
}

impl CallQueue {
    pub fn new(agent: Agent, events: WeakSender<RunEvent>, team: Arc<RunBudget>) -> Self {
        Self { agent, events, team, waiting: VecDeque::new(), under_way: JoinSet::new(), ids: HashMap::new() }
    }

    pub fn add(&mut self, wanted: QueuedCall) {
        self.waiting.push_back(wanted);
        self.start_queued();
    }

    /// Waits for the next call to end. Waits forever if none is running. Cancel-safe.
    pub async fn next_finished(&mut self) -> (String, CallReport) {
        let Some(ended) = self.under_way.join_next_with_id().await else { return std::future::pending().await };
        self.start_queued();
        let task = ended.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let id = self.ids.remove(&task).unwrap_or_default();
        let outcome = match ended {
            Ok((_, result)) => result.unwrap_or_else(|failure| failure.to_outcome()),
            Err(_) => ToolOutcome::error("internal error: the tool's task failed without a result"),
        };
        (id, report_from_outcome(&outcome))
    }

    /// Cancels all calls and waits until they have ended. Sub-agents are shut down first, so that they can cancel their
    /// own calls before their tasks are aborted.
    pub async fn cancel_all(&mut self) {
        self.waiting.clear();
        self.team.shut_down().await;
        self.under_way.shutdown().await;
        self.ids.clear();
    }

    fn start_queued(&mut self) {
        while self.under_way.len() < self.agent.limits.calls_at_once.max(1)
            && let Some(QueuedCall { id, tool, arguments }) = self.waiting.pop_front()
        {
            let mut call = ToolInvocation::new(arguments, self.agent.caller.clone());
            call.progress = Some(progress_sink(&self.events, &id));
            let calling = execute_call(self.agent.clone(), tool, call);
            let task = self.under_way.spawn(self.team.clone().scope(calling));
            self.ids.insert(task.id(), id);
        }
    }
}

async fn execute_call(agent: Agent, tool: String, call: ToolInvocation) -> Result<ToolOutcome, RegistryCallError> {
    agent.registry.call(&tool, call).await
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
