//! Starts threads. At the process limit (`ulimit -u`) the system refuses a thread; every function here then returns an
//! error.
//!
//! `std::thread::spawn` panics in that case. `tokio::task::spawn_blocking` panics or queues the work behind threads that
//! never end. The product starts no thread in another way.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod blocking;
mod runtime;

use std::io;
use std::thread::Builder;

pub use blocking::{run_blocking, run_in_background, wait_for_background};
pub use runtime::start_runtime;

/// Starts a thread that is never joined.
///
/// # Errors
///
/// Fails if the system refuses a thread. The message says so.
pub fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    Builder::new().name(name.to_owned()).spawn(work).map(drop).map_err(|error| describe(&error))
}

fn describe(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot start a thread: {error}"))
}
