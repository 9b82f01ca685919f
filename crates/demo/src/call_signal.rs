//! Wakes a waiting thread on a timeout, an answer or a cancellation.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::message::lock_unpoisoned;

/// Wakes one waiting thread.
#[derive(Default)]
pub struct CallSignal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Default)]
struct SignalState {
    rung: bool,
    /// Delivered answers that were not fetched yet. Only answers that the thread asked for are delivered, and it
    /// fetches all of them.
    answers: HashMap<String, Value>,
}

impl CallSignal {
    /// Ends every wait, now and later.
    pub fn cancel(&self) {
        lock_unpoisoned(&self.state).rung = true;
        self.changed.notify_all();
    }

    /// Delivers the answer that the thread waits for under `key`.
    pub fn deliver(&self, key: &str, answer: Value) {
        lock_unpoisoned(&self.state).answers.insert(key.to_owned(), answer);
        self.changed.notify_all();
    }

    /// Waits for the answer `key` without a time limit. Returns `None` if the alarm rings first.
    pub fn wait_for_answer(&self, key: &str) -> Option<Value> {
        let mut state = lock_unpoisoned(&self.state);
        loop {
            if state.rung {
                return None;
            }
            if let Some(answer) = state.answers.remove(key) {
                return Some(answer);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until `due` has passed since `started`. Returns whether the alarm rang before.
    pub fn is_cancelled_within(&self, started: Instant, due: Duration) -> bool {
        let mut state = lock_unpoisoned(&self.state);
        loop {
            let left = due.saturating_sub(started.elapsed());
            if state.rung || left.is_zero() {
                return state.rung;
            }
            state = match self.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}
