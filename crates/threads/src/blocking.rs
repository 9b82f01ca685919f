//! Blocking work off the runtime's threads.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

use crate::start_thread;

/// Name of a thread that does blocking work.
const THREAD_NAME: &str = "wharf-blocking";

/// Number of unfinished works of [`run_blocking`] and [`run_in_background`].
static UNFINISHED: Mutex<usize> = Mutex::new(0);
static FINISHED: Condvar = Condvar::new();

/// Runs blocking work on a thread of its own and waits for its result.
///
/// # Errors
///
/// Fails if no thread can be started or if the work panics.
///
/// # Cancel safety
///
/// Cancelling the wait does not stop the work; its result is dropped.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let unfinished = UnfinishedWork::new();
    let work = move || {
        let _unfinished = unfinished;
        work()
    };
    let (done, result) = oneshot::channel();
    start_work(move || drop(done.send(work())))?;
    result.await.map_err(|_| io::Error::other("internal error: a background task failed"))
}

/// Runs blocking work on a thread of its own without waiting for it. If no thread can be started, runs it at once.
pub fn run_in_background(work: impl FnOnce() + Send + 'static) {
    let unfinished = UnfinishedWork::new();
    let shared = Arc::new(Mutex::new(Some(move || {
        let _unfinished = unfinished;
        work();
    })));
    let taken = Arc::clone(&shared);
    let run = move || {
        let work = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.into_iter().for_each(|work| work());
    };
    if start_work(run).is_err() {
        let work = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.into_iter().for_each(|work| work());
    }
}

/// Waits until all work is finished, at most for the time limit. For the end of a program.
pub fn wait_for_background(limit: Duration) {
    let unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    drop(FINISHED.wait_timeout_while(unfinished, limit, |unfinished| *unfinished > 0));
}

fn start_work(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // Only a runtime with one thread can have a paused clock, which stands still during its own blocking tasks.
    if Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread) {
        let started = catch_unwind(AssertUnwindSafe(|| drop(tokio::task::spawn_blocking(work))));
        return started.map_err(|_| io::Error::new(io::ErrorKind::WouldBlock, "cannot start a thread"));
    }
    start_thread(THREAD_NAME, work)
}

/// One unfinished work, counted until it is dropped, even by a panic.
struct UnfinishedWork(());

impl UnfinishedWork {
    fn new() -> Self {
        *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self(())
    }
}

impl Drop for UnfinishedWork {
    fn drop(&mut self) {
        *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FINISHED.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    async fn check() {
        assert_eq!(run_blocking(|| 7).await.unwrap(), 7);
        let failed = run_blocking(|| -> u8 { panic!("on purpose") }).await.unwrap_err();
        assert_eq!(failed.to_string(), "internal error: a background task failed");
        let (done, ended) = mpsc::channel();
        run_in_background(move || done.send(()).unwrap());
        run_blocking(move || ended.recv().unwrap()).await.unwrap();
        wait_for_background(Duration::from_secs(60));
    }

    #[tokio::test]
    async fn work_runs_and_panics_become_errors() {
        check().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn work_runs_beside_several_workers() {
        check().await;
    }

    #[tokio::test(start_paused = true)]
    async fn paused_clock_stands_still_during_work() {
        let (go, gone) = mpsc::channel::<()>();
        let work = run_blocking(move || gone.recv_timeout(Duration::from_millis(50)).is_err());
        let outcome = tokio::time::timeout(Duration::from_secs(3600), work).await;
        assert!(outcome.unwrap().unwrap());
        drop(go);
    }
}
