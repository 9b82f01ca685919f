//! Lines of a server that are not messages: excerpts for diagnostics, and a count that the handshake waits on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// Maximum number of stored excerpts.
const MAX_EXCERPTS: usize = 5;

/// The unreadable lines of one connection.
#[derive(Default)]
pub(crate) struct UnreadableLines {
    count: AtomicU64,
    /// The first lines: escaped, redacted and cut.
    excerpts: Mutex<Vec<String>>,
    arrived: Notify,
    has_message: AtomicBool,
}

impl UnreadableLines {
    pub(super) fn record(&self, excerpt: String) {
        let mut excerpts = self.excerpts.lock().unwrap_or_else(PoisonError::into_inner);
        if excerpts.len() < MAX_EXCERPTS {
            excerpts.push(excerpt);
        }
        drop(excerpts);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.arrived.notify_waiters();
    }

    /// Records that the server has sent a message.
    pub(super) fn record_message(&self) {
        // A load is cheaper than a store, and true stays true.
        if !self.has_message.load(Ordering::Relaxed) {
            self.has_message.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the first lines: escaped, redacted and cut.
    pub fn excerpts(&self) -> Vec<String> {
        self.excerpts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Reports whether the server has sent a message.
    pub fn has_message(&self) -> bool {
        self.has_message.load(Ordering::Relaxed)
    }

    /// Waits until more than `count` lines have arrived. Cancel-safe.
    pub async fn wait_for_more(&self, count: u64) {
        loop {
            let mut arrived = std::pin::pin!(self.arrived.notified());
            arrived.as_mut().enable();
            if self.count() > count {
                return;
            }
            arrived.await;
        }
    }
}
