//! Connections whose client has not shown yet that it may send requests.
//!
//! They are fewer than all connections, and a new one ends the oldest of them. So a program without the token cannot
//! keep out clients that have it. Each has a moment for its first request, so that many clients can connect at once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

/// Maximum number of unproven connections.
const MAX_UNPROVEN: usize = 256;
/// Time that each of them has.
const MIN_AGE: Duration = Duration::from_millis(250);
/// Interval at which a new connection looks for room.
const ROOM_INTERVAL: Duration = Duration::from_millis(5);

/// State of one connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionProof(AtomicBool);

impl ConnectionProof {
    /// Marks a connection on which a request was granted.
    pub fn give(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_given(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The unproven connections, oldest first.
#[derive(Default)]
pub(super) struct UnprovenConnections(Mutex<VecDeque<UnprovenConnection>>);

struct UnprovenConnection {
    proof: Arc<ConnectionProof>,
    task: AbortHandle,
    since: Instant,
}

impl UnprovenConnections {
    /// Waits until there is room for one more. If none is proven meanwhile, the oldest one is closed after its time.
    ///
    /// Cancel-safe.
    pub async fn make_room(&self) {
        while !self.has_room() {
            sleep(ROOM_INTERVAL).await;
        }
    }

    fn has_room(&self) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_UNPROVEN {
            all.retain(|connection| !connection.proof.is_given() && !connection.task.is_finished());
        }
        if all.len() >= MAX_UNPROVEN
            && let Some(oldest) = all.pop_front_if(|oldest| oldest.since.elapsed() >= MIN_AGE)
        {
            oldest.task.abort();
        }
        all.len() < MAX_UNPROVEN
    }

    /// Adds a connection.
    pub fn add(&self, proof: Arc<ConnectionProof>, task: AbortHandle) {
        let connection = UnprovenConnection { proof, task, since: Instant::now() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn oldest_unproven_connection_is_closed_after_its_time() {
        let unproven = UnprovenConnections::default();
        let connections: Vec<_> = (0..=MAX_UNPROVEN)
            .map(|_| (Arc::<ConnectionProof>::default(), tokio::spawn(std::future::pending::<()>())))
            .collect();
        let add = |(proof, task): &(Arc<ConnectionProof>, tokio::task::JoinHandle<()>)| {
            unproven.add(Arc::clone(proof), task.abort_handle());
        };
        connections[..MAX_UNPROVEN].iter().for_each(add);
        assert!(!unproven.has_room(), "each has a moment");
        connections[0].0.give();
        unproven.make_room().await;
        add(&connections[MAX_UNPROVEN]);
        assert!(connections.iter().all(|(_, task)| !task.is_finished()), "a proven one made room");
        let before = Instant::now();
        unproven.make_room().await;
        assert!(before.elapsed() >= MIN_AGE - ROOM_INTERVAL);
        let mut connections = connections;
        assert!(connections.remove(1).1.await.unwrap_err().is_cancelled());
        assert!(connections.iter().all(|(_, task)| !task.is_finished()));
    }
}
