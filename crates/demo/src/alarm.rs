//! What wakes a thread that waits: the time, an answer, or the end of what it works for.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::message::locked;

/// Wakes one waiting thread.
#[derive(Default)]
pub struct Alarm {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    rung: bool,
    /// What has been delivered and not yet fetched. The thread fetches all that it asked for, and
    /// nothing else is delivered.
    answers: HashMap<String, Value>,
}

impl Alarm {
    /// Ends every wait, now and later.
    pub fn ring(&self) {
        locked(&self.state).rung = true;
        self.changed.notify_all();
    }

    /// Hands over what the thread waits for under the name `key`.
    pub fn deliver(&self, key: &str, answer: Value) {
        locked(&self.state).answers.insert(key.to_owned(), answer);
        self.changed.notify_all();
    }

    /// Waits for what is delivered as `key`, however long that takes; nothing if the alarm rings first.
    pub fn fetch(&self, key: &str) -> Option<Value> {
        let mut state = locked(&self.state);
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

    /// Waits until `due` has passed since `started`; says whether the alarm rang meanwhile.
    pub fn rings_before(&self, started: Instant, due: Duration) -> bool {
        let mut state = locked(&self.state);
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
