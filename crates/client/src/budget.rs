//! Byte budgets: the total size of the server data that the client holds in memory.
//!
//! [`crate::Limits::message`] bounds one message. A budget bounds many of them, per server and over all servers that
//! share the budget. No reader waits for room: a message that does not fit is discarded, and the call or list it
//! belongs to fails with [`BudgetExceeded`]. Small messages are not counted, so a server that sends only small ones is
//! unaffected by the others.
//!
//! Large messages are read on a low-priority thread, one at a time over all servers that share a budget. They block no
//! runtime thread and use at most one processor.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::low_priority::LowPriorityThread;
use crate::throttle::{ReceiveThrottle, SharedThrottle};

/// Messages of at least this many bytes are counted.
pub(crate) const MIN_COUNTED_BYTES: usize = 16 << 10;
/// Messages of at least this many bytes are read one at a time.
pub(crate) const LARGE_MESSAGE_BYTES: usize = 384 << 10;

/// A byte budget shared by all connections created with it. Clones share the same budget.
#[derive(Clone)]
pub struct ByteBudget(Arc<HostBudget>);

/// The error for a message that was discarded because a budget has no room for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetExceeded {
    /// The budget that has no room.
    pub scope: BudgetScope,
    /// Size of that budget in bytes.
    pub limit: usize,
}

/// The servers a budget covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetScope {
    /// One server.
    Server,
    /// All servers of a host.
    Host,
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope {
            BudgetScope::Server => write!(f, "this server exceeds its memory budget of {} bytes", self.limit),
            BudgetScope::Host => write!(f, "all servers together exceed the memory budget of {} bytes", self.limit),
        }
    }
}

impl std::error::Error for BudgetExceeded {}

/// What all servers with one budget share.
struct HostBudget {
    counter: BudgetCounter,
    /// Reads large messages.
    reader: LowPriorityThread,
    /// Serializes the readers of large messages.
    turns: Semaphore,
    /// Serializes those that pause.
    paused_turns: Semaphore,
    throttle: Arc<SharedThrottle>,
}

struct BudgetCounter {
    limit: usize,
    used: AtomicUsize,
}

impl BudgetCounter {
    fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0) }
    }

    /// Adds bytes if the sum stays within the limit. Reports whether it does.
    fn add(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn subtract(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl ByteBudget {
    /// Creates a budget of this many bytes.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(HostBudget {
            counter: BudgetCounter::new(limit),
            reader: LowPriorityThread::default(),
            turns: Semaphore::new(1),
            paused_turns: Semaphore::new(1),
            throttle: Arc::new(SharedThrottle::new()),
        }))
    }

    /// Returns the size of the budget in bytes.
    pub fn limit(&self) -> usize {
        self.0.counter.limit
    }

    /// Returns the number of bytes in use.
    pub fn used(&self) -> usize {
        self.0.counter.used.load(Ordering::Relaxed)
    }

    /// Creates the budget of one server, with its own limit.
    pub(crate) fn for_server(&self, limit: usize) -> ServerBudget {
        ServerBudget {
            server: Arc::new(BudgetCounter::new(limit)),
            host: Arc::clone(&self.0),
            pace: Arc::new(ReceiveThrottle::new(Arc::clone(&self.0.throttle))),
        }
    }
}

impl fmt::Debug for ByteBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteBudget({} of {} bytes)", self.used(), self.limit())
    }
}

/// The share of one server in a [`ByteBudget`].
#[derive(Clone)]
pub(crate) struct ServerBudget {
    server: Arc<BudgetCounter>,
    host: Arc<HostBudget>,
    pace: Arc<ReceiveThrottle>,
}

impl ServerBudget {
    /// Counts bytes until the returned charge is dropped.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if the server's or the host's budget has no room.
    pub fn charge(&self, bytes: usize) -> Result<BudgetCharge, BudgetExceeded> {
        let mut charge = BudgetCharge { budget: self.clone(), bytes: 0 };
        charge.resize(bytes)?;
        Ok(charge)
    }

    /// Returns the rate limit for data the server sends.
    pub fn throttle(&self) -> &ReceiveThrottle {
        &self.pace
    }

    /// Runs `work` on this many bytes of a message: inline if they are few, otherwise on the low-priority thread.
    /// Returns `None` if `work` panics or the runtime is shutting down.
    ///
    /// # Cancel safety
    ///
    /// Cancelling the wait does not stop the work; its result is dropped.
    pub async fn offload_if_large<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if bytes < LARGE_MESSAGE_BYTES {
            return Some(work());
        }
        self.host.reader.run(work).await
    }

    /// Yields to all other ready tasks, and pauses if the server exceeds its rate; called by a reader that has much to
    /// read. Such readers resume one at a time, so that twenty of them delay a small message no more than one does.
    /// Those that pause have their own queue, which delays no other reader.
    pub async fn wait_for_turn(&self) {
        // The semaphores are never closed.
        if self.pace.required_pause().is_some() {
            let _turn = self.host.paused_turns.acquire().await;
            // Other readers have read since.
            if let Some(pause) = self.pace.required_pause() {
                tokio::time::sleep(pause).await;
            }
            return;
        }
        let _turn = self.host.turns.acquire().await;
        tokio::task::yield_now().await;
    }

    /// Creates a charge of zero bytes, to be resized.
    pub fn empty_charge(&self) -> BudgetCharge {
        BudgetCharge { budget: self.clone(), bytes: 0 }
    }
}

/// Bytes that are counted until this value is dropped.
pub(crate) struct BudgetCharge {
    budget: ServerBudget,
    bytes: usize,
}

impl BudgetCharge {
    /// Changes the number of bytes counted. The charge is unchanged on error.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if the server's or the host's budget has no room.
    pub fn resize(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        let (server, host) = (&self.budget.server, &self.budget.host.counter);
        if let Some(more) = bytes.checked_sub(self.bytes) {
            if !server.add(more) {
                return Err(BudgetExceeded { scope: BudgetScope::Server, limit: server.limit });
            }
            if !host.add(more) {
                server.subtract(more);
                return Err(BudgetExceeded { scope: BudgetScope::Host, limit: host.limit });
            }
        } else {
            server.subtract(self.bytes - bytes);
            host.subtract(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for BudgetCharge {
    fn drop(&mut self) {
        // Shrinking always succeeds.
        let _ = self.resize(0);
    }
}

/// A buffer together with its charge, released when its last slice is dropped.
struct ChargedMemory<T> {
    memory: T,
    _charge: BudgetCharge,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for ChargedMemory<T> {
    fn as_ref(&self) -> &[u8] {
        self.memory.as_ref()
    }
}

/// Attaches a charge to a buffer. Every slice of the returned bytes holds the charge.
pub(crate) fn attach_charge(memory: impl AsRef<[u8]> + Send + 'static, charge: BudgetCharge) -> Bytes {
    Bytes::from_owner(ChargedMemory { memory, _charge: charge })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charge_is_released_when_last_slice_drops() {
        let budget = ByteBudget::new(100);
        let server = budget.for_server(60);
        let bytes = attach_charge(vec![7; 40], server.charge(40).unwrap());
        let part = bytes.slice(3..5);
        drop(bytes);
        assert_eq!((budget.used(), &part[..]), (40, &[7, 7][..]));
        drop(part);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn charges_over_server_or_host_limit_are_rejected() {
        let budget = ByteBudget::new(100);
        let (one, other) = (budget.for_server(60), budget.for_server(60));
        let exceeded = |scope, limit| Err(BudgetExceeded { scope, limit });
        let mut first = one.charge(50).unwrap();
        assert_eq!(one.charge(11).map(drop), exceeded(BudgetScope::Server, 60));
        assert_eq!(first.resize(61), exceeded(BudgetScope::Server, 60));
        assert_eq!(other.charge(51).map(drop), exceeded(BudgetScope::Host, 100));
        let second = other.charge(50).unwrap();
        assert_eq!(budget.used(), 100, "what was refused counts nowhere");
        first.resize(10).unwrap();
        drop(second);
        assert_eq!(budget.used(), 10);
        assert!(other.charge(60).is_ok());
    }
}
