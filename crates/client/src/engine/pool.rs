//! Reuse of buffers for large results.
//!
//! An allocator returns freed memory at the end of its heap to the system. A large result would then cost one page
//! fault per page, every time.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::budget::{BudgetExceeded, MIN_COUNTED_BYTES, ServerBudget, attach_charge};

/// Minimum size of a pooled buffer.
const MIN_POOLED_BYTES: usize = MIN_COUNTED_BYTES;
/// Maximum bytes of unused buffers.
const MAX_POOLED_BYTES: usize = 4 << 20;

/// Unused buffers.
#[derive(Clone, Default)]
pub(super) struct BufferPool(Arc<Mutex<FreeBuffers>>);

#[derive(Default)]
struct FreeBuffers {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl BufferPool {
    /// Copies bytes. A large copy is charged to the budget.
    pub fn copy_bytes(&self, bytes: &[u8], budget: &ServerBudget) -> Result<Bytes, BudgetExceeded> {
        if bytes.len() < MIN_POOLED_BYTES {
            return Ok(Bytes::copy_from_slice(bytes));
        }
        let charge = budget.charge(bytes.len())?;
        let mut buffer = self.take_buffer(bytes.len());
        buffer.extend_from_slice(bytes);
        Ok(attach_charge(PooledBuffer { buffer, home: Arc::clone(&self.0) }, charge))
    }

    fn take_buffer(&self, length: usize) -> Vec<u8> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The last buffer returned is most likely still in the CPU cache.
        let fits = free.buffers.iter().rposition(|buffer| (length..=4 * length).contains(&buffer.capacity()));
        match fits {
            Some(index) => {
                let buffer = free.buffers.swap_remove(index);
                free.bytes -= buffer.capacity();
                buffer
            }
            None => {
                drop(free);
                Vec::with_capacity(length.next_multiple_of(MIN_POOLED_BYTES))
            }
        }
    }
}

/// A buffer in use. It returns to the pool when the last result that refers to it is dropped.
struct PooledBuffer {
    buffer: Vec<u8>,
    home: Arc<Mutex<FreeBuffers>>,
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let mut free = self.home.lock().unwrap_or_else(PoisonError::into_inner);
        if free.bytes + buffer.capacity() <= MAX_POOLED_BYTES {
            free.bytes += buffer.capacity();
            free.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::ByteBudget;

    #[test]
    fn dropped_buffers_are_pooled_up_to_the_limit() {
        let pool = BufferPool::default();
        let total = ByteBudget::new(10_100_000);
        let budget = total.for_server(20_000_000);
        let held: Vec<Bytes> =
            (0..100).map(|number| pool.copy_bytes(&vec![number; 100_000], &budget).unwrap()).collect();
        assert!(total.used() == 10_000_000 && pool.copy_bytes(&[0; 100_001], &budget).is_err());
        assert!(held.iter().enumerate().all(|(number, bytes)| bytes.iter().all(|&byte| usize::from(byte) == number)));
        drop(held);
        assert_eq!(total.used(), 0, "what is kept for the next result is bounded by itself");
        let kept = pool.0.lock().unwrap().bytes;
        assert!(kept > 0 && kept <= MAX_POOLED_BYTES);
        let again = pool.copy_bytes(&vec![7; 100_000], &budget).unwrap();
        assert!(pool.0.lock().unwrap().bytes < kept);
        assert_eq!(again.len(), 100_000);
        assert_eq!(pool.copy_bytes(b"small", &budget).unwrap(), b"small"[..]);
    }
}
