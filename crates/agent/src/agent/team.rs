//! What a run shares with the sub-agents it has called: its requests, what they cost, and its end.
//!
//! A sub-agent is a tool like any other and is called through the registry, which knows nothing of runs. So the task of
//! each call carries the team of the run that made it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

tokio::task_local! {
    static TEAM: Arc<Team>;
}

/// One run, as its sub-agents know it.
pub(crate) struct Team {
    /// Requests that are left, to the run and to whoever works for it.
    left: Arc<AtomicU32>,
    /// What sub-agents have spent, as far as nobody was told.
    spent: Mutex<Spent>,
    /// Whether the sub-agents are to end. Whoever listens is still at work.
    dismissed: watch::Sender<bool>,
}

/// What was asked of a model, and what it has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub requests: u32,
    pub input: u64,
    pub output: u64,
    pub cached: u64,
}

/// A sub-agent at work. Its run goes on until this is dropped.
pub(crate) struct Member {
    dismissed: watch::Receiver<bool>,
    is_told: bool,
}

impl Team {
    /// The team of a run that may make these requests.
    pub fn new(left: Arc<AtomicU32>) -> Arc<Self> {
        Arc::new(Self { left, spent: Mutex::default(), dismissed: watch::Sender::new(false) })
    }

    /// The team of the run that made this call; none where no run did.
    pub fn of_this_call() -> Option<Arc<Self>> {
        TEAM.try_with(Arc::clone).ok()
    }

    /// Makes a call in the name of this team.
    pub async fn calling<T>(self: Arc<Self>, call: impl Future<Output = T>) -> T {
        TEAM.scope(self, call).await
    }

    pub fn left(&self) -> Arc<AtomicU32> {
        self.left.clone()
    }

    /// Takes one of the requests that are left, and says whether there was one.
    pub fn take_request(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// Notes what a sub-agent has spent.
    pub fn spend(&self, more: Spent) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.requests = spent.requests.saturating_add(more.requests);
        spent.input = spent.input.saturating_add(more.input);
        spent.output = spent.output.saturating_add(more.output);
        spent.cached = spent.cached.saturating_add(more.cached);
    }

    /// What was spent since this was last asked; nothing where that is nothing.
    pub fn take_spent(&self) -> Option<Spent> {
        let spent = std::mem::take(&mut *self.spent.lock().unwrap_or_else(PoisonError::into_inner));
        (spent != Spent::default()).then_some(spent)
    }

    /// A place in the team.
    pub fn join(&self) -> Member {
        Member { dismissed: self.dismissed.subscribe(), is_told: false }
    }

    /// Has all sub-agents end, and returns when the last of them has withdrawn its calls.
    pub async fn dismiss(&self) {
        self.dismissed.send_replace(true);
        self.dismissed.closed().await;
    }
}

impl Member {
    /// Waits until it is dismissed, which is told once. Dropped while it waits, nothing is lost.
    pub async fn dismissed(&mut self) {
        if self.is_told {
            return std::future::pending().await;
        }
        // Where the team is gone, there is nobody to work for either.
        let _ = self.dismissed.wait_for(|is_dismissed| *is_dismissed).await;
        self.is_told = true;
    }
}
