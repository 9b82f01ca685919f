//! Single-flight execution: concurrent callers share one task.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use wharf_net::AuthFuture;

/// Behaviour of a task when no caller waits for it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AbandonPolicy {
    /// The task is cancelled.
    Attended,
    /// The task runs to its end.
    Detached,
}

/// A single-flight group. Callers join the running task or start a new one.
pub(super) struct SingleFlight<T> {
    current: Mutex<Option<SharedTask<T>>>,
    work: TaskCounter,
}

/// Counts running tasks.
#[derive(Default)]
pub(super) struct TaskCounter(watch::Sender<usize>);

/// Marks a task as running until dropped.
pub(super) struct RunningTask(watch::Sender<usize>);

struct SharedTask<T> {
    outcome: watch::Receiver<Option<T>>,
    /// Handle of the waiting callers. Dead once no caller waits; `None` for a detached task.
    seat: Option<Weak<WaiterGuard>>,
}

/// A caller that waits for a task.
pub(super) struct TaskWaiter<T> {
    outcome: watch::Receiver<Option<T>>,
    _seat: Option<Arc<WaiterGuard>>,
}

/// Shared by all waiting callers. Dropping the last one aborts the task.
struct WaiterGuard(AbortHandle);

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    pub(super) fn new() -> Self {
        Self { current: Mutex::new(None), work: TaskCounter::default() }
    }

    /// Joins the running task, or starts one.
    pub(super) fn join(&self, kind: AbandonPolicy, work: impl FnOnce() -> AuthFuture<T>) -> TaskWaiter<T> {
        let mut current = self.current();
        if let Some(waiting) = current.as_ref().and_then(SharedTask::try_join) {
            return waiting;
        }
        let (sender, outcome) = watch::channel(None);
        let (work, under_way) = (work(), self.work.begin());
        let task = tokio::spawn(async move {
            let value = work.await;
            drop(under_way);
            let _ = sender.send(Some(value));
        });
        let seat = (kind == AbandonPolicy::Attended).then(|| Arc::new(WaiterGuard(task.abort_handle())));
        *current = Some(SharedTask { outcome: outcome.clone(), seat: seat.as_ref().map(Arc::downgrade) });
        TaskWaiter { outcome, _seat: seat }
    }

    pub(super) fn is_running(&self) -> bool {
        self.work.is_running()
    }

    /// Prevents callers from joining the running task. Callers that already wait are not affected.
    pub(super) fn detach(&self) {
        *self.current() = None;
    }

    /// Waits until no task is running.
    pub(super) async fn wait_until_idle(&self) {
        self.work.wait_until_idle().await;
    }

    fn current(&self) -> MutexGuard<'_, Option<SharedTask<T>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskCounter {
    pub(super) fn begin(&self) -> RunningTask {
        self.0.send_modify(|count| *count += 1);
        RunningTask(self.0.clone())
    }

    pub(super) fn is_running(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Waits until no task is running.
    pub(super) async fn wait_until_idle(&self) {
        // The channel stays open: its sender is here.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl<T> SharedTask<T> {
    fn try_join(&self) -> Option<TaskWaiter<T>> {
        let seat = match &self.seat {
            Some(seat) => Some(seat.upgrade()?),
            None => None,
        };
        self.is_running().then(|| TaskWaiter { outcome: self.outcome.clone(), _seat: seat })
    }

    fn is_running(&self) -> bool {
        self.outcome.borrow().is_none() && self.outcome.has_changed().is_ok()
    }
}

impl<T: Clone> TaskWaiter<T> {
    /// Returns the result, or `None` if the task did not finish.
    pub(super) async fn outcome(mut self) -> Option<T> {
        let outcome = self.outcome.wait_for(Option::is_some).await.ok()?;
        outcome.clone()
    }
}

impl Drop for WaiterGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    struct FlightBench {
        flights: SingleFlight<u32>,
        begun: Arc<AtomicU32>,
        ended: Arc<AtomicU32>,
        gate: Arc<Semaphore>,
    }

    impl FlightBench {
        fn new() -> Self {
            let counter = || Arc::new(AtomicU32::new(0));
            Self { flights: SingleFlight::new(), begun: counter(), ended: counter(), gate: Arc::new(Semaphore::new(0)) }
        }

        fn join(&self, kind: AbandonPolicy) -> TaskWaiter<u32> {
            let (begun, ended, gate) = (self.begun.clone(), self.ended.clone(), self.gate.clone());
            self.flights.join(kind, || {
                Box::pin(async move {
                    let number = begun.fetch_add(1, Ordering::Relaxed) + 1;
                    gate.acquire().await.unwrap().forget();
                    ended.fetch_add(1, Ordering::Relaxed);
                    number
                })
            })
        }

        fn counts(&self) -> (u32, u32) {
            (self.begun.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed))
        }
    }

    #[tokio::test]
    async fn concurrent_callers_share_the_first_task() {
        let bench = FlightBench::new();
        let waiting: Vec<_> = (0..100).map(|_| bench.join(AbandonPolicy::Detached)).collect();
        bench.gate.add_permits(1);
        for one in waiting {
            assert_eq!(one.outcome().await, Some(1));
        }
        assert_eq!(bench.counts(), (1, 1));
        bench.gate.add_permits(1);
        assert_eq!(bench.join(AbandonPolicy::Detached).outcome().await, Some(2));
        assert!(!bench.flights.is_running());
    }

    #[tokio::test]
    async fn abandoned_task_continues_or_stops_by_policy() {
        for (kind, expected) in [(AbandonPolicy::Detached, (1, 1)), (AbandonPolicy::Attended, (2, 1))] {
            let bench = FlightBench::new();
            let (one, other) = (bench.join(kind), bench.join(kind));
            tokio::task::yield_now().await;
            drop(one);
            assert!(bench.flights.is_running());
            drop(other);
            tokio::task::yield_now().await;
            let again = bench.join(kind);
            bench.gate.add_permits(1);
            again.outcome().await.unwrap();
            assert_eq!(bench.counts(), expected, "{kind:?}");
        }
    }

    #[tokio::test]
    async fn idle_wait_includes_detached_tasks() {
        let bench = FlightBench::new();
        bench.flights.wait_until_idle().await;
        let doomed = bench.join(AbandonPolicy::Detached);
        bench.flights.detach();
        let next = bench.join(AbandonPolicy::Detached);
        let settled = bench.flights.wait_until_idle();
        tokio::pin!(settled);
        tokio::select! {
            biased;
            () = &mut settled => panic!("two are under way"),
            () = tokio::task::yield_now() => {}
        }
        bench.gate.add_permits(2);
        settled.await;
        assert_eq!((doomed.outcome().await, next.outcome().await), (Some(1), Some(2)));
    }
}
