//! The requests of one client in progress, by id.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::task::AbortHandle;

/// Maximum number of requests in progress per client.
pub(crate) const MAX_REQUESTS: usize = 64;

#[derive(Default)]
pub(crate) struct RunningRequests {
    state: Mutex<RunningState>,
}

#[derive(Default)]
struct RunningState {
    by_id: HashMap<Bytes, RunningRequest>,
    reserved: u64,
    is_closed: bool,
}

struct RunningRequest {
    /// Distinguishes requests that use the same id one after the other.
    serial: u64,
    /// `None` until the task is known.
    task: Option<AbortHandle>,
}

/// Reason for refusing a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartRefusal {
    IdInUse,
    /// Of one client.
    TooMany,
    TooManyOfPrincipal,
    Closed,
}

impl RunningRequests {
    fn state(&self) -> MutexGuard<'_, RunningState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the id of a request and returns its serial number.
    ///
    /// # Errors
    ///
    /// Returns the reason for refusing it.
    pub fn reserve(&self, id: &Bytes) -> Result<u64, StartRefusal> {
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
        state.reserved += 1;
        let serial = state.reserved;
        state.by_id.insert(id.clone(), RunningRequest { serial, task: None });
        Ok(serial)
    }

    /// Stores the task of a request, unless it has ended.
    pub fn set_task(&self, id: &Bytes, serial: u64, task: AbortHandle) {
        let mut state = self.state();
        match state.by_id.get_mut(id).filter(|request| request.serial == serial) {
            Some(request) => request.task = Some(task),
            // Cancelled before its task was known, or ended already.
            None => task.abort(),
        }
    }

    /// Ends a request. Returns false if it was cancelled before.
    pub fn finish(&self, id: &Bytes, serial: u64) -> bool {
        let mut state = self.state();
        let is_running = state.by_id.get(id).is_some_and(|request| request.serial == serial);
        is_running && state.by_id.remove(id).is_some()
    }

    /// Cancels a request, if it is in progress.
    pub fn cancel(&self, id: &[u8]) {
        if let Some(task) = self.state().by_id.remove(id).and_then(|request| request.task) {
            task.abort();
        }
    }

    /// Cancels all requests.
    pub fn cancel_all(&self) {
        self.state().by_id.drain().filter_map(|(_, request)| request.task).for_each(|task| task.abort());
    }

    /// Cancels all requests and refuses further ones.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.cancel_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelled_request_does_not_end_its_successor() {
        let (running, id) = (RunningRequests::default(), Bytes::from_static(b"1"));
        let first = running.reserve(&id).unwrap();
        assert_eq!(running.reserve(&id), Err(StartRefusal::IdInUse));
        running.cancel(&id);
        let second = running.reserve(&id).unwrap();
        assert!(!running.finish(&id, first) && running.finish(&id, second));
        running.close();
        assert_eq!(running.reserve(&id), Err(StartRefusal::Closed));
    }
}
