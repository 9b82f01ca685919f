//! Byte budgets: everything that servers have sent and the client still holds, counted in total.
//!
//! A message is bounded by [`crate::Limits::message`]; many of them are bounded here, per server and over all servers
//! that share a budget. Nothing waits for room: the message that does not fit is discarded, and the call or the list it
//! belongs to fails with [`BudgetExceeded`]. Small messages are not counted, so a server that sends none but those is
//! not affected by the others.
//!
//! Large messages are read on a thread of low priority, one at a time over all servers that share a budget: they keep
//! neither the runtime's threads nor more than one processor from the others.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::low_priority::LowPriorityThread;
use crate::pace::Pace;

/// Bytes from this size on are counted.
pub(crate) const COUNTED_FROM: usize = 16 << 10;
/// Messages from this size on are read one at a time.
pub(crate) const LARGE: usize = 384 << 10;

/// A number of bytes that all connections made with it share. Clones share it as well.
#[derive(Clone)]
pub struct ByteBudget(Arc<Counter>);

/// A budget that has no room left; what did not fit has been discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetExceeded {
    /// Whose budget it is.
    pub scope: BudgetScope,
    /// How many bytes it has.
    pub limit: usize,
}

/// Whose bytes a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetScope {
    /// Those of one server.
    Server,
    /// Those of all servers of a host.
    Host,
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope {
            BudgetScope::Server => write!(f, "more than {} bytes of this server at once", self.limit),
            BudgetScope::Host => write!(f, "more than {} bytes of all servers at once", self.limit),
        }
    }
}

impl std::error::Error for BudgetExceeded {}

struct Counter {
    limit: usize,
    used: AtomicUsize,
    /// Reads large messages.
    reader: LowPriorityThread,
    /// Whoever sends much goes on one at a time.
    turns: Semaphore,
}

impl Counter {
    fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
            reader: LowPriorityThread::default(),
            turns: Semaphore::new(1),
        })
    }

    /// Counts more bytes, unless that exceeds the limit.
    fn add(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn subtract(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl ByteBudget {
    /// A budget of this many bytes.
    pub fn new(limit: usize) -> Self {
        Self(Counter::new(limit))
    }

    /// How many bytes it has.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// How many bytes are held at present.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// The part of one server, which has a limit of its own.
    pub(crate) fn of_server(&self, limit: usize) -> ServerBudget {
        ServerBudget { server: Counter::new(limit), host: Arc::clone(&self.0), pace: Arc::new(Pace::new()) }
    }
}

impl fmt::Debug for ByteBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteBudget({} of {} bytes)", self.used(), self.limit())
    }
}

/// One server's part of a [`ByteBudget`].
#[derive(Clone)]
pub(crate) struct ServerBudget {
    server: Arc<Counter>,
    host: Arc<Counter>,
    pace: Arc<Pace>,
}

impl ServerBudget {
    /// Counts bytes until the charge is dropped.
    pub fn charge(&self, bytes: usize) -> Result<Charge, BudgetExceeded> {
        let mut charge = Charge { budget: self.clone(), bytes: 0 };
        charge.resize(bytes)?;
        Ok(charge)
    }

    /// How fast the server may send.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Does work on this many bytes of a message: at once where they are few, else on the thread of low priority. Nothing
    /// where the work panics or the runtime is shutting down.
    ///
    /// Dropped while it waits, the work is done all the same, and its result is dropped.
    pub async fn work<T: Send + 'static>(&self, bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if bytes < LARGE {
            return Some(work());
        }
        self.host.reader.run(work).await
    }

    /// Waits until everything else that is ready had its turn, for a reader that has much to read. Of all such readers one
    /// goes on at a time, so that twenty of them delay a small message as little as one does.
    pub async fn turn(&self) {
        // Never closed.
        let _turn = self.host.turns.acquire().await;
        tokio::task::yield_now().await;
    }

    /// A charge of nothing, to be resized.
    pub fn empty(&self) -> Charge {
        Charge { budget: self.clone(), bytes: 0 }
    }
}

/// Bytes that are counted for as long as this exists.
pub(crate) struct Charge {
    budget: ServerBudget,
    bytes: usize,
}

impl Charge {
    /// Counts this many bytes instead. Where there is no room for more, the charge stays as it is.
    pub fn resize(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        let ServerBudget { server, host, .. } = &self.budget;
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

impl Drop for Charge {
    fn drop(&mut self) {
        // Shrinking always succeeds.
        let _ = self.resize(0);
    }
}

/// Memory together with its charge, released when the last slice of it is dropped.
struct Charged<T> {
    memory: T,
    _charge: Charge,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Charged<T> {
    fn as_ref(&self) -> &[u8] {
        self.memory.as_ref()
    }
}

/// Binds a charge to memory: whatever is cut out of these bytes keeps it.
pub(crate) fn charged(memory: impl AsRef<[u8]> + Send + 'static, charge: Charge) -> Bytes {
    Bytes::from_owner(Charged { memory, _charge: charge })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_counts_until_the_last_slice_is_dropped() {
        let budget = ByteBudget::new(100);
        let server = budget.of_server(60);
        let bytes = charged(vec![7; 40], server.charge(40).unwrap());
        let part = bytes.slice(3..5);
        drop(bytes);
        assert_eq!((budget.used(), &part[..]), (40, &[7, 7][..]));
        drop(part);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_server_is_stopped_at_its_own_part_and_all_of_them_at_the_total() {
        let budget = ByteBudget::new(100);
        let (one, other) = (budget.of_server(60), budget.of_server(60));
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
