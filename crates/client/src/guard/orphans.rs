//! Children nobody waits for any more: guards whose watcher was dropped with its runtime.

use std::process::Child;

/// Takes a child that ends by itself, and sees that nothing of it stays in the process table.
///
/// Without a runtime only a thread can wait; this one lives as long as the guard's grace, in a case that is rare.
pub(super) fn leave(mut child: Child) {
    if matches!(child.try_wait(), Ok(None)) {
        // Where no thread can be had, the entry stays until this process ends.
        let _ = std::thread::Builder::new().name("wharf-reaper".to_owned()).spawn(move || child.wait());
    }
}
