//! The requests of one client in progress, by id.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::task::AbortHandle;

/// Maximum number of requests in progress per client.
const MAX_REQUESTS: usize = 64;

#[derive(Default)]
pub(crate) struct RunningRequests {
    state: Mutex<RunningState>,
}

#[derive(Default)]
struct RunningState {
    /// `None` until the task is known.
    by_id: HashMap<Bytes, Option<AbortHandle>>,
    is_closed: bool,
}

/// Reason for refusing a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartRefusal {
    IdInUse,
    TooMany,
    Closed,
}

impl RunningRequests {
    fn state(&self) -> MutexGuard<'_, RunningState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the id of a request.
    ///
    /// # Errors
    ///
    /// Returns the reason for refusing it.
    pub fn reserve(&self, id: &Bytes) -> Result<(), StartRefusal> {
        let mut state = self.state();
        if state.is_closed {
            return Err(StartRefusal::Closed);
        }
        if state.by_id.contains_key(id) {
            return Err(StartRefusal::IdInUse);
        }
        if state.by_id.len() >= MAX_REQUESTS {
            return Err(StartRefusal::TooMany);
        }
        state.by_id.insert(id.clone(), None);
        Ok(())
    }

    /// Stores the task of a request, unless it has ended.
    pub fn set_task(&self, id: &Bytes, task: AbortHandle) {
        let mut state = self.state();
        match state.by_id.get_mut(id) {
            Some(slot) => *slot = Some(task),
            // Cancelled before its task was known, or ended already.
            None => task.abort(),
        }
    }

    /// Ends a request. Returns false if it was cancelled before.
    pub fn finish(&self, id: &Bytes) -> bool {
        self.state().by_id.remove(id).is_some()
    }

    /// Cancels a request, if it is in progress.
    pub fn cancel(&self, id: &[u8]) {
        if let Some(Some(task)) = self.state().by_id.remove(id) {
            task.abort();
        }
    }

    /// Cancels all requests.
    pub fn cancel_all(&self) {
        self.state().by_id.drain().filter_map(|(_, task)| task).for_each(|task| task.abort());
    }

    /// Cancels all requests and refuses further ones.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.cancel_all();
    }
}
