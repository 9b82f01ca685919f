//! A thread of low priority for large messages: other threads that wake up take the processor from it at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{OnceLock, mpsc};

use rustix::process::setpriority_process;
use tokio::sync::oneshot;

/// How much the priority is lowered, as by `nice`. The share that is left is small but not nothing.
const NICENESS: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

/// One thread that does one piece of work after the other. It starts with the first and ends when this is dropped.
#[derive(Default)]
pub struct LowPriorityThread(OnceLock<Option<mpsc::Sender<Job>>>);

impl LowPriorityThread {
    /// Does work on the thread, or on one of the runtime's that may block where the thread cannot be started. Nothing
    /// where the work panics or the runtime is shutting down.
    ///
    /// Dropped while it waits, the work is done all the same, and its result is dropped.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (done, result) = oneshot::channel();
        let job: Job = Box::new(move || drop(done.send(work())));
        match self.0.get_or_init(start) {
            // The thread outlives the sender, so that sending does not fail.
            Some(jobs) => drop(jobs.send(job)),
            None => drop(tokio::task::spawn_blocking(job)),
        }
        result.await.ok()
    }
}

fn start() -> Option<mpsc::Sender<Job>> {
    let (jobs, queue) = mpsc::channel::<Job>();
    let run = move || {
        // On Linux this concerns the calling thread alone. Lowering is always allowed.
        let _ = setpriority_process(None, NICENESS);
        for job in queue {
            // Whoever waits for it learns of a panic by getting nothing.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    };
    std::thread::Builder::new().name("wharf-large".to_owned()).spawn(run).ok().map(|_| jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_done_at_low_priority_and_a_panic_costs_only_itself() {
        let thread = LowPriorityThread::default();
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let usual = niceness();
        assert_eq!(thread.run(niceness).await, Some(usual.max(NICENESS)));
        assert_eq!(thread.run(|| -> u8 { panic!("on purpose") }).await, None);
        assert_eq!(thread.run(|| 7).await, Some(7));
        assert_eq!(niceness(), usual, "no other thread is concerned");
    }
}
