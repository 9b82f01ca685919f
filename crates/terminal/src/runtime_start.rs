//! The start of a command's runtime.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Runtime;

/// Worker threads of the runtime.
const WORKERS: usize = 2;
/// Maximum checks, and the interval between them, for the end of the trial threads.
const MAX_END_CHECKS: usize = 1_000;
const END_CHECK_INTERVAL: Duration = Duration::from_micros(100);

/// Starts the runtime, if the system grants all its threads: Tokio waits forever for the first worker if the second is
/// refused.
///
/// # Errors
///
/// Fails if the system refuses a thread or a descriptor.
pub fn start_runtime() -> io::Result<Runtime> {
    try_threads(WORKERS)?;
    wharf_threads::start_runtime(WORKERS).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(error.kind(), "no more threads or file descriptors"),
        _ => error,
    })
}

/// Starts threads at the same time and waits for their end.
fn try_threads(count: usize) -> io::Result<()> {
    let before = thread_count();
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let started = (0..count).try_for_each(|_| {
        let gate = Arc::clone(&gate);
        wharf_threads::start_thread("wharf-trial", move || drop(gate.lock()))
    });
    drop(closed);
    // An ended thread counts until the system has removed it.
    for _ in 0..MAX_END_CHECKS {
        if thread_count() <= before {
            break;
        }
        std::thread::sleep(END_CHECK_INTERVAL);
    }
    started
}

/// Returns the number of this process's threads, or 0 if it is unknown.
fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}
