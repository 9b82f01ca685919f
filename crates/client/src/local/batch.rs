//! Batches of messages between the host's thread and the handler thread, so that they do not wake each other for every
//! message.
//!
//! Waking a thread costs more than handling a small message. A task on the host's runtime wakes the worker once for all
//! messages sent so far, and sends all finished responses at once.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::Notify;

use super::dispatcher::ClosureDispatcher;
use crate::transport::memory::{ClientSender, ServerEnd, Workers};

/// Maximum messages handled before pending handlers are polled and responses are sent.
const MAX_BATCH: usize = 32;

/// Responses on their way to the host's runtime, and the signals in both directions.
#[derive(Default)]
pub(super) struct ResponseBatch {
    /// Bounded by the calls in flight.
    answers: Mutex<Vec<Bytes>>,
    /// Signalled when there are messages to handle.
    arrivals: Notify,
    /// Signalled when there are responses to send.
    departures: Notify,
}

impl ResponseBatch {
    /// Adds a response to the batch. [`ResponseBatch::flush`] sends it.
    pub fn push(&self, answer: Vec<u8>) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer.into());
    }

    /// Wakes the host's side to send the batch.
    pub fn flush(&self) {
        self.departures.notify_one();
    }

    fn send_all(&self, outbox: &ClientSender) {
        let answers = std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner));
        answers.into_iter().for_each(|answer| outbox.send(answer));
    }
}

/// Runs the host's side for as long as it is polled. Refuses messages if every worker thread is blocked.
pub(super) async fn run_host_side(
    serving: Arc<ClosureDispatcher>,
    ferry: Arc<ResponseBatch>,
    end: ServerEnd,
    workers: Workers,
) {
    let outbox = end.sender();
    let mut stuck = false;
    loop {
        tokio::select! {
            () = end.wait_for_message() => ferry.arrivals.notify_one(),
            () = ferry.departures.notified() => {}
            () = workers.wait_until_exhausted() => stuck = true,
        }
        ferry.send_all(&outbox);
        while stuck && let Some(message) = end.try_receive() {
            stuck = !serving.handle_on_worker(message);
        }
    }
}

/// Handles messages on a worker thread until the server is dropped.
pub(super) async fn run_worker_side(serving: Weak<ClosureDispatcher>, ferry: Arc<ResponseBatch>, end: ServerEnd) {
    // A blocked thread may have left responses in the batch.
    ferry.flush();
    loop {
        let mut taken = 0usize;
        while let Some(message) = end.try_receive() {
            let Some(serving) = serving.upgrade() else { return };
            serving.handle_message(&message);
            taken += 1;
            if taken.is_multiple_of(MAX_BATCH) {
                ferry.flush();
                tokio::task::yield_now().await;
            }
        }
        ferry.flush();
        ferry.arrivals.notified().await;
    }
}
