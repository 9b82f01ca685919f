//! State that a run shares with its sub-agents: the request budget, the usage and the shutdown signal.
//!
//! A sub-agent is an ordinary tool and is called through the registry, which does not know about runs. A task-local
//! therefore carries the run's state into the task of each call.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

tokio::task_local! {
    static CURRENT_RUN: Arc<RunBudget>;
}

/// The state of one run that its sub-agents share.
pub(crate) struct RunBudget {
    /// Remaining requests of the run and its sub-agents.
    requests_left: Arc<AtomicU32>,
    /// Usage of the sub-agents that has not been reported yet.
    sub_agent_usage: Mutex<ModelUsage>,
    /// Shutdown signal for the sub-agents. Each subscribed receiver is a running sub-agent.
    shutdown: watch::Sender<bool>,
}

/// Requests and tokens used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ModelUsage {
    pub requests: u32,
    pub input: u64,
    pub output: u64,
    pub cached: u64,
}

/// Registration of a running sub-agent. The parent run waits until it is dropped.
pub(crate) struct SubAgentHandle {
    shutdown: watch::Receiver<bool>,
    is_reported: bool,
}

impl RunBudget {
    /// Creates the shared state of a run with this request budget.
    pub fn new(requests_left: Arc<AtomicU32>) -> Arc<Self> {
        Arc::new(Self { requests_left, sub_agent_usage: Mutex::default(), shutdown: watch::Sender::new(false) })
    }

    /// Returns the state of the run that made the current call, or `None` outside a run.
    pub fn current() -> Option<Arc<Self>> {
        CURRENT_RUN.try_with(Arc::clone).ok()
    }

    /// Runs a call with this state as its task-local.
    pub async fn scope<T>(self: Arc<Self>, call: impl Future<Output = T>) -> T {
        CURRENT_RUN.scope(self, call).await
    }

    pub fn requests_left(&self) -> Arc<AtomicU32> {
        self.requests_left.clone()
    }

    /// Takes one request from the budget. Reports whether one was left.
    pub fn take_request(&self) -> bool {
        self.requests_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// Adds to the usage of the sub-agents.
    pub fn add_usage(&self, more: ModelUsage) {
        let mut usage = self.sub_agent_usage.lock().unwrap_or_else(PoisonError::into_inner);
        usage.requests = usage.requests.saturating_add(more.requests);
        usage.input = usage.input.saturating_add(more.input);
        usage.output = usage.output.saturating_add(more.output);
        usage.cached = usage.cached.saturating_add(more.cached);
    }

    /// Returns the usage since the previous call, or `None` if there is none.
    pub fn take_usage(&self) -> Option<ModelUsage> {
        let usage = std::mem::take(&mut *self.sub_agent_usage.lock().unwrap_or_else(PoisonError::into_inner));
        (usage != ModelUsage::default()).then_some(usage)
    }

    /// Registers a sub-agent.
    pub fn register_sub_agent(&self) -> SubAgentHandle {
        SubAgentHandle { shutdown: self.shutdown.subscribe(), is_reported: false }
    }

    /// Signals all sub-agents to stop and waits until all of them have cancelled their calls and ended.
    pub async fn shut_down(&self) {
        self.shutdown.send_replace(true);
        self.shutdown.closed().await;
    }
}

impl SubAgentHandle {
    /// Waits for the shutdown signal, which is reported once. Cancel-safe.
    pub async fn wait_for_shutdown(&mut self) {
        if self.is_reported {
            return std::future::pending().await;
        }
        // A closed channel means that the parent run is gone, which also ends the sub-agent.
        let _ = self.shutdown.wait_for(|is_shutdown| *is_shutdown).await;
        self.is_reported = true;
    }
}
