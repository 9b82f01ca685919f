//! The runtime of a program.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use tokio::runtime::{Builder, Runtime};

/// Builds a runtime with these worker threads. Call it while the program has no other thread that may panic.
///
/// # Errors
///
/// Fails if the system refuses the first thread, a descriptor or memory.
pub fn start_runtime(workers: usize) -> io::Result<Runtime> {
    let build = || Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    // Tokio panics if its first worker cannot be started. With at least one worker the runtime is complete.
    let hook = take_hook();
    set_hook(Box::new(|_| ()));
    let runtime = catch_unwind(AssertUnwindSafe(build));
    set_hook(hook);
    runtime.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::WouldBlock, "cannot start a thread")))
}
