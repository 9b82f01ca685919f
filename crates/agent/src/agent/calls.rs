//! Calls under way: a task each, so many at once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc::WeakSender;
use tokio::task::{Id, JoinError, JoinSet};
use wharf_json::Raw;
use wharf_tools::{Call, CallFailure, Outcome, Progress, ProgressSink};

use super::{Agent, Team};
use crate::run::{CallReport, RunEvent, report};

/// Characters of what a tool says it is doing.
const LONGEST_MESSAGE: usize = 1000;

/// A call that was asked for.
pub(super) struct Wanted {
    pub id: String,
    pub tool: String,
    pub arguments: Raw,
}

/// The calls of one answer. Dropped, all are withdrawn.
pub(super) struct Calls {
    agent: Agent,
    /// Takes progress. Weak, since a tool may keep its sink for longer than there is anybody to be told.
    events: WeakSender<RunEvent>,
    team: Arc<Team>,
    /// Bounded by how long an answer may be.
    waiting: VecDeque<Wanted>,
    under_way: JoinSet<Result<Outcome, CallFailure>>,
    ids: HashMap<Id, String>,
}

impl Calls {
    pub fn new(agent: Agent, events: WeakSender<RunEvent>, team: Arc<Team>) -> Self {
        Self { agent, events, team, waiting: VecDeque::new(), under_way: JoinSet::new(), ids: HashMap::new() }
    }

    pub fn add(&mut self, wanted: Wanted) {
        self.waiting.push_back(wanted);
        self.begin_next();
    }

    /// The next call that ends; waits for ever where there is none. Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> (String, CallReport) {
        let Some(ended) = self.under_way.join_next_with_id().await else { return std::future::pending().await };
        self.begin_next();
        let task = ended.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let id = self.ids.remove(&task).unwrap_or_default();
        let outcome = match ended {
            Ok((_, result)) => result.unwrap_or_else(|failure| failure.to_outcome()),
            Err(_) => Outcome::error("the tool broke down and gave no answer"),
        };
        (id, report(&outcome))
    }

    /// Withdraws all, and returns when the last of them is gone: those of sub-agents first, who would otherwise be gone
    /// before them.
    pub async fn withdraw(&mut self) {
        self.waiting.clear();
        self.team.dismiss().await;
        self.under_way.shutdown().await;
        self.ids.clear();
    }

    fn begin_next(&mut self) {
        while self.under_way.len() < self.agent.limits.calls_at_once.max(1)
            && let Some(Wanted { id, tool, arguments }) = self.waiting.pop_front()
        {
            let mut call = Call::new(arguments, self.agent.caller.clone());
            call.progress = Some(sink(&self.events, &id));
            let calling = carry_out(self.agent.clone(), tool, call);
            let task = self.under_way.spawn(self.team.clone().calling(calling));
            self.ids.insert(task.id(), id);
        }
    }
}

async fn carry_out(agent: Agent, tool: String, call: Call) -> Result<Outcome, CallFailure> {
    agent.registry.call(&tool, call).await
}

/// Tells how far a call is, as long as there is room: nobody waits for who watches.
fn sink(events: &WeakSender<RunEvent>, id: &str) -> ProgressSink {
    let (events, id) = (events.clone(), id.to_owned());
    Arc::new(move |progress: Progress| {
        if let Some(events) = events.upgrade() {
            let message = progress.message.map(|text| text.chars().take(LONGEST_MESSAGE).collect());
            let progress = Progress { message, ..progress };
            let _ = events.try_send(RunEvent::CallProgress { id: id.clone(), progress });
        }
    })
}
