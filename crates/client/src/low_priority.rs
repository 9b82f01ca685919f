//! A low-priority thread for large messages: any other thread that wakes up preempts it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{OnceLock, mpsc};

use rustix::process::setpriority_process;
use tokio::sync::oneshot;

/// Niceness of the thread, as set by `nice`. A small share of the processor remains.
const NICENESS: i32 = 10;

type LowPriorityJob = Box<dyn FnOnce() + Send>;

/// A thread that runs jobs one after the other. It starts with the first job and ends when this value is dropped.
#[derive(Default)]
pub struct LowPriorityThread(OnceLock<Option<mpsc::Sender<LowPriorityJob>>>);

impl LowPriorityThread {
    /// Runs `work` on the thread, or on this one if the thread cannot be started. Returns `None` if `work` panics.
    ///
    /// # Cancel safety
    ///
    /// Cancelling the wait does not stop the work; its result is dropped.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (done, result) = oneshot::channel();
        let job: LowPriorityJob = Box::new(move || drop(done.send(work())));
        match self.0.get_or_init(start_thread) {
            // The thread outlives the sender, so sending does not fail.
            Some(jobs) => drop(jobs.send(job)),
            None => drop(catch_unwind(AssertUnwindSafe(job))),
        }
        result.await.ok()
    }
}

fn start_thread() -> Option<mpsc::Sender<LowPriorityJob>> {
    let (jobs, queue) = mpsc::channel::<LowPriorityJob>();
    let run = move || {
        // On Linux this affects only the calling thread. Lowering the priority is always allowed.
        let _ = setpriority_process(None, NICENESS);
        for job in queue {
            // After a panic the caller of `run` gets `None`.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    };
    wharf_threads::start_thread("wharf-large", run).ok().map(|()| jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_runs_at_low_priority_and_survives_a_panic() {
        let thread = LowPriorityThread::default();
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let usual = niceness();
        assert_eq!(thread.run(niceness).await, Some(usual.max(NICENESS)));
        assert_eq!(thread.run(|| -> u8 { panic!("on purpose") }).await, None);
        assert_eq!(thread.run(|| 7).await, Some(7));
        assert_eq!(niceness(), usual, "no other thread is concerned");
    }
}
