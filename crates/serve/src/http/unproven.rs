//! Connections whose client has not shown yet that it may send requests.
//!
//! They are fewer than all connections, and a new one ends the oldest of them. So a program without the token cannot
//! keep out clients that have it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::AbortHandle;

/// Maximum number of unproven connections.
const MAX_UNPROVEN: usize = 256;

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
pub(super) struct UnprovenConnections(Mutex<VecDeque<(Arc<ConnectionProof>, AbortHandle)>>);

impl UnprovenConnections {
    /// Adds a connection. If there are too many, the oldest one is closed.
    pub fn add(&self, proof: Arc<ConnectionProof>, task: AbortHandle) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_UNPROVEN {
            all.retain(|(proof, task)| !proof.is_given() && !task.is_finished());
        }
        if all.len() >= MAX_UNPROVEN
            && let Some((_, oldest)) = all.pop_front()
        {
            oldest.abort();
        }
        all.push_back((proof, task));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn oldest_unproven_connection_is_closed() {
        let unproven = UnprovenConnections::default();
        let connections: Vec<_> = (0..=MAX_UNPROVEN)
            .map(|_| (Arc::<ConnectionProof>::default(), tokio::spawn(std::future::pending::<()>())))
            .collect();
        let add = |(proof, task): &(Arc<ConnectionProof>, tokio::task::JoinHandle<()>)| {
            unproven.add(Arc::clone(proof), task.abort_handle());
        };
        connections[..MAX_UNPROVEN].iter().for_each(add);
        connections[0].0.give();
        add(&connections[MAX_UNPROVEN]);
        tokio::task::yield_now().await;
        assert!(connections.iter().all(|(_, task)| !task.is_finished()), "a proven one made room");
        let (proof, task) = (Arc::default(), tokio::spawn(std::future::pending::<()>()));
        unproven.add(proof, task.abort_handle());
        let mut connections = connections;
        assert!(connections.remove(1).1.await.unwrap_err().is_cancelled());
        assert!(!connections[0].1.is_finished() && !task.is_finished());
    }
}
