//! Worker threads that run the handlers of an in-process server, apart from the host's runtime.
//!
//! One thread at a time, with its own runtime. A thread that is blocked is set aside: its unfinished work may still end
//! there, and new work goes to a fresh thread.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use crate::limits::Limits;
use crate::services::BoxedFuture;

tokio::task_local! {
    /// Number of enclosing calls to in-process servers.
    static DEPTH: usize;
}

/// Maximum number of threads set aside at once. Beyond that no new thread is started.
const MAX_SET_ASIDE: usize = 16;
/// Consecutive idle checks after which the watcher stops until there is work again.
const MAX_IDLE_CHECKS: u32 = 8;

/// Returns the current nesting depth.
pub(super) fn depth() -> usize {
    DEPTH.try_with(|depth| *depth).unwrap_or(0)
}

/// The worker threads of one server. Cheap to clone.
#[derive(Clone)]
pub struct Workers {
    shared: Arc<WorkersShared>,
}

struct WorkersShared {
    server: String,
    /// The host's runtime, which runs the watcher.
    host: Handle,
    current: Mutex<Option<WorkerThread>>,
    /// Task that every thread runs in addition to its jobs.
    resident: Mutex<Option<ResidentTask>>,
    /// Signalled when there is no thread and no new one can be started.
    exhausted: Notify,
    /// Maximum time a thread may be unresponsive while there is work.
    stall: Duration,
    grace: Duration,
    watched: AtomicBool,
    jobs: AtomicUsize,
    set_aside: AtomicUsize,
    leaked: AtomicU64,
    panics: AtomicU64,
    closed: watch::Sender<bool>,
}

type ResidentTask = Arc<dyn Fn() -> BoxedFuture<()> + Send + Sync>;

/// A thread and its runtime.
struct WorkerThread {
    handle: Handle,
    load: Arc<ThreadLoad>,
    stop: watch::Sender<bool>,
    ended: watch::Receiver<bool>,
}

/// The jobs of one thread.
#[derive(Default)]
struct ThreadLoad {
    jobs: AtomicUsize,
    /// Signalled when the last job is done.
    idle: Notify,
}

/// The health of a server's workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkersHealth {
    /// Threads that were set aside because a handler blocked them, and have not recovered.
    pub set_aside: usize,
    /// Number of panicked handlers.
    pub panics: u64,
    /// Tasks that handlers had left running at the last check.
    pub leaked_tasks: u64,
}

/// A panic of a handler, with its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerPanic(pub String);

impl fmt::Display for HandlerPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked: {}", self.0)
    }
}

impl Workers {
    pub(super) fn new(server: &str, limits: &Limits) -> Self {
        let shared = WorkersShared {
            server: server.to_owned(),
            host: Handle::current(),
            current: Mutex::new(None),
            resident: Mutex::new(None),
            exhausted: Notify::new(),
            stall: limits.local_stall,
            grace: limits.stop_grace,
            watched: AtomicBool::new(false),
            jobs: AtomicUsize::new(0),
            set_aside: AtomicUsize::new(0),
            leaked: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            closed: watch::Sender::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Runs `work` for a message of this depth and returns a handle to abort it. Returns `None` if no thread is
    /// available.
    ///
    /// A panic ends only this work; see [`Workers::catch_panics`] to observe it.
    pub fn spawn(&self, depth: usize, work: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        let (handle, load) = self.worker()?;
        let job = JobGuard::begin(&self.shared, Some(load));
        let task = handle.spawn(DEPTH.scope(depth + 1, async move {
            let _job = job;
            let _ = CatchPanic(Box::pin(work)).await;
        }));
        self.ensure_watched();
        Some(task.abort_handle())
    }

    /// Sets the task that every thread runs in addition to its jobs, such as the one that handles a server's messages.
    pub(crate) fn set_resident(&self, resident: impl Fn() -> BoxedFuture<()> + Send + Sync + 'static) {
        *self.shared.resident() = Some(Arc::new(resident));
        self.worker();
    }

    /// Polls `work` once for a message of this depth. Must be called on a worker thread. Pending work must then be
    /// spawned: this poll registers no waker.
    pub(crate) fn poll_once<T>(&self, depth: usize, work: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        let _job = JobGuard::begin(&self.shared, None);
        self.ensure_watched();
        DEPTH.sync_scope(depth + 1, || work.poll(&mut Context::from_waker(Waker::noop())))
    }

    /// Resolves when too many threads have been set aside and none is left.
    pub(crate) async fn wait_until_exhausted(&self) {
        self.shared.exhausted.notified().await;
    }

    /// Wraps a handler's work, so that a panic becomes an error.
    pub fn catch_panics<T>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Result<T, HandlerPanic>> + Send + 'static
    where
        T: Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        async move {
            let outcome = CatchPanic(Box::pin(work)).await;
            if outcome.is_err() {
                shared.panics.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(server = %shared.server, "a handler panicked");
            }
            outcome
        }
    }

    /// Returns the health of the workers.
    pub fn health(&self) -> WorkersHealth {
        WorkersHealth {
            set_aside: self.shared.set_aside.load(Ordering::Relaxed),
            panics: self.shared.panics.load(Ordering::Relaxed),
            leaked_tasks: self.shared.leaked.load(Ordering::Relaxed),
        }
    }

    /// Ends the current thread as soon as it becomes responsive, without waiting.
    pub(super) fn stop_without_waiting(&self) {
        self.shared.closed.send_replace(true);
        drop(self.shared.current().take());
    }

    /// Ends the current thread and waits for it, up to the grace period.
    pub(super) async fn stop(&self) {
        self.shared.closed.send_replace(true);
        let worker = self.shared.current().take();
        let Some(WorkerThread { handle, stop, mut ended, .. }) = worker else { return };
        self.shared.record_leaks(&handle);
        drop((handle, stop));
        let _ = tokio::time::timeout(self.shared.grace, ended.wait_for(|ended| *ended)).await;
    }

    fn worker(&self) -> Option<(Handle, Arc<ThreadLoad>)> {
        let mut current = self.shared.current();
        if current.is_none() {
            *current = self.shared.start_another();
        }
        current.as_ref().map(|worker| (worker.handle.clone(), Arc::clone(&worker.load)))
    }

    /// Ensures that the watcher runs while there is work.
    fn ensure_watched(&self) {
        if self.shared.watched.load(Ordering::SeqCst) || self.shared.watched.swap(true, Ordering::SeqCst) {
            return;
        }
        // Ends by itself, with the server or when idle.
        self.shared.host.spawn(watch_thread(Arc::downgrade(&self.shared), self.shared.stall));
    }
}

/// Watches the current thread until there has been no work for a while.
async fn watch_thread(weak: Weak<WorkersShared>, stall: Duration) {
    let mut quiet = 0;
    loop {
        if let Some(handle) = weak.upgrade().and_then(|shared| shared.current_handle()) {
            let alive = tokio::time::timeout(stall, handle.spawn(async {})).await.is_ok();
            let Some(shared) = weak.upgrade() else { return };
            if !alive {
                shared.set_aside(&handle);
            } else if shared.is_idle() {
                shared.record_leaks(&handle);
            }
        }
        tokio::time::sleep(stall).await;
        let Some(shared) = weak.upgrade().filter(|shared| !shared.is_closed()) else { return };
        quiet = if shared.is_idle() { quiet + 1 } else { 0 };
        if quiet >= MAX_IDLE_CHECKS {
            shared.watched.store(false, Ordering::SeqCst);
            // Work that started just before this relies on the watcher.
            if shared.is_idle() || shared.watched.swap(true, Ordering::SeqCst) {
                return;
            }
            quiet = 0;
        }
    }
}

impl WorkersShared {
    fn current(&self) -> MutexGuard<'_, Option<WorkerThread>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    fn is_idle(&self) -> bool {
        self.jobs.load(Ordering::SeqCst) == 0
    }

    fn current_handle(&self) -> Option<Handle> {
        self.current().as_ref().map(|worker| worker.handle.clone())
    }

    fn resident(&self) -> MutexGuard<'_, Option<ResidentTask>> {
        self.resident.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts another thread, unless too many have been set aside.
    fn start_another(self: &Arc<Self>) -> Option<WorkerThread> {
        let hopeless = self.set_aside.load(Ordering::Relaxed) > MAX_SET_ASIDE;
        if hopeless || self.is_closed() { None } else { WorkerThread::start(self) }
    }

    /// Sets a blocked thread aside, if it is still the current one.
    fn set_aside(self: &Arc<Self>, handle: &Handle) {
        let mut current = self.current();
        if current.as_ref().is_some_and(|worker| worker.handle.id() == handle.id()) {
            *current = None;
            self.set_aside.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(server = %self.server, "handler blocks its thread, continuing on a new thread");
            if self.resident().is_some() {
                *current = self.start_another();
                if current.is_none() {
                    self.exhausted.notify_one();
                }
            }
        }
    }

    /// Counts tasks that belong to no job: handlers left them running.
    fn record_leaks(&self, handle: &Handle) {
        let expected = self.jobs.load(Ordering::Acquire) + usize::from(self.resident().is_some());
        let left = handle.metrics().num_alive_tasks().saturating_sub(expected) as u64;
        if self.leaked.swap(left, Ordering::Relaxed) < left {
            tracing::warn!(server = %self.server, tasks = left, "handlers left tasks running");
        }
    }
}

impl WorkerThread {
    fn start(shared: &Arc<WorkersShared>) -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let handle = runtime.handle().clone();
        let (stop, mut stopped) = watch::channel(false);
        let (done, ended) = watch::channel(false);
        let weak = Arc::downgrade(shared);
        let name = format!("wharf {}", shared.server.chars().take(8).collect::<String>());
        let id = handle.id();
        let load = Arc::new(ThreadLoad::default());
        let (unfinished, mut closed) = (Arc::clone(&load), shared.closed.subscribe());
        let resident = shared.resident().clone();
        let thread = wharf_threads::start_thread(&name, move || {
            if let Some(resident) = resident {
                runtime.spawn(resident());
            }
            // Ends when the sender is dropped. A thread that was set aside first finishes its work.
            runtime.block_on(async move {
                while stopped.changed().await.is_ok() {}
                tokio::select! {
                    () = unfinished.wait_until_idle() => {}
                    _ = closed.wait_for(|closed| *closed) => {}
                }
            });
            runtime.shutdown_background();
            // A thread that was set aside and has recovered is no longer counted.
            if let Some(shared) = weak.upgrade() {
                let present = shared.current().as_ref().is_some_and(|worker| worker.handle.id() == id);
                if !present && !shared.is_closed() {
                    let _ = shared.set_aside.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
                }
            }
            let _ = done.send(true);
        });
        thread.ok().map(|()| Self { handle, load, stop, ended })
    }
}

impl ThreadLoad {
    /// Waits until there is no job left.
    async fn wait_until_idle(&self) {
        while self.jobs.load(Ordering::Acquire) > 0 {
            self.idle.notified().await;
        }
    }
}

/// Counts a piece of work while it exists, for its server and for its thread if it was spawned there.
struct JobGuard {
    shared: Arc<WorkersShared>,
    load: Option<Arc<ThreadLoad>>,
}

impl JobGuard {
    fn begin(shared: &Arc<WorkersShared>, load: Option<Arc<ThreadLoad>>) -> Self {
        shared.jobs.fetch_add(1, Ordering::SeqCst);
        if let Some(load) = &load {
            load.jobs.fetch_add(1, Ordering::AcqRel);
        }
        Self { shared: Arc::clone(shared), load }
    }
}

impl Drop for JobGuard {
    fn drop(&mut self) {
        self.shared.jobs.fetch_sub(1, Ordering::SeqCst);
        if let Some(load) = &self.load
            && load.jobs.fetch_sub(1, Ordering::AcqRel) == 1
        {
            load.idle.notify_one();
        }
    }
}

/// A future that catches panics.
pub(super) struct CatchPanic<F>(pub Pin<Box<F>>);

impl<F: Future> Future for CatchPanic<F> {
    type Output = Result<F::Output, HandlerPanic>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(HandlerPanic(panic_message(&*payload)))),
        }
    }
}

fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
