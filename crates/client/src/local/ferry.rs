//! What goes between the host's thread and the one that handles, gathered, so that neither wakes the other for each
//! message.
//!
//! Waking another thread costs more than handling a small message. A task on the host's runtime calls the taker once
//! for all that callers have sent in their turns, and hands out in one go all that the taker has answered in its own.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::Notify;

use super::serving::Serving;
use crate::transport::memory::{Outbox, ServerEnd, Workers};

/// Messages taken before handlers that wait get their turn, and before answers leave.
const IN_A_ROW: usize = 32;

/// Answers on their way to the host's runtime, and the bells at both ends.
#[derive(Default)]
pub(super) struct Ferry {
    /// Bounded by the calls in flight.
    answers: Mutex<Vec<Bytes>>,
    /// There are messages to take.
    arrivals: Notify,
    /// There are answers to hand out.
    departures: Notify,
}

impl Ferry {
    /// Puts an answer with the others; it leaves when somebody rings.
    pub fn load(&self, answer: Vec<u8>) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer.into());
    }

    /// Has the answers handed out.
    pub fn ring(&self) {
        self.departures.notify_one();
    }

    fn hand_out(&self, outbox: &Outbox) {
        let answers = std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner));
        answers.into_iter().for_each(|answer| outbox.send(answer));
    }
}

/// Runs the host's side for as long as it is polled. Where no thread is left, messages are refused.
pub(super) async fn host_side(serving: Arc<Serving>, ferry: Arc<Ferry>, end: ServerEnd, workers: Workers) {
    let outbox = end.outbox();
    let mut stuck = false;
    loop {
        tokio::select! {
            () = end.arrival() => ferry.arrivals.notify_one(),
            () = ferry.departures.notified() => {}
            () = workers.exhausted() => stuck = true,
        }
        ferry.hand_out(&outbox);
        while stuck && let Some(message) = end.take() {
            stuck = !serving.take_elsewhere(message);
        }
    }
}

/// Takes messages on a thread of the workers, for as long as somebody serves.
pub(super) async fn worker_side(serving: Weak<Serving>, ferry: Arc<Ferry>, end: ServerEnd) {
    // A thread that blocks may have left answers behind.
    ferry.ring();
    loop {
        let mut taken = 0usize;
        while let Some(message) = end.take() {
            let Some(serving) = serving.upgrade() else { return };
            serving.take(&message);
            taken += 1;
            if taken.is_multiple_of(IN_A_ROW) {
                ferry.ring();
                tokio::task::yield_now().await;
            }
        }
        ferry.ring();
        ferry.arrivals.notified().await;
    }
}
