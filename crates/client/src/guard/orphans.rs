//! Children nobody waits for any more: guards whose watcher was dropped with its runtime.
//!
//! They end by themselves; what is left of them is an entry in the process table, collected the next time a server
//! is started or left.

use std::process::Child;
use std::sync::{Mutex, PoisonError};

static ORPHANS: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Takes a child that ends by itself.
pub(super) fn leave(child: Child) {
    let mut orphans = ORPHANS.lock().unwrap_or_else(PoisonError::into_inner);
    orphans.push(child);
    drop(orphans);
    collect();
}

/// Reaps those that have ended. Does not wait.
pub(super) fn collect() {
    let mut orphans = ORPHANS.lock().unwrap_or_else(PoisonError::into_inner);
    orphans.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
}
