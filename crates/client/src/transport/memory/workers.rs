//! Threads that carry out what a server in this process does, apart from the host's runtime.
//!
//! One thread at a time, with a runtime of its own. A thread that no longer takes its turns is set aside: what it has
//! begun may still end there, everything new goes to a fresh one.

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
use crate::services::Pending;

tokio::task_local! {
    /// Within how many calls to servers in this process the present work lies.
    static DEPTH: usize;
}

/// Threads set aside at once; with more, the server is beyond help.
const MOST_SET_ASIDE: usize = 16;
/// Quiet looks in a row after which nobody watches any more until there is work again.
const QUIET_LOOKS: u32 = 8;

/// The present depth.
pub(super) fn depth() -> usize {
    DEPTH.try_with(|depth| *depth).unwrap_or(0)
}

/// Where the work of one server is done. Cheap to clone.
#[derive(Clone)]
pub struct Workers {
    shared: Arc<Shared>,
}

struct Shared {
    server: String,
    /// The runtime of the host, where somebody looks after the threads.
    host: Handle,
    current: Mutex<Option<Worker>>,
    /// What every thread does beside its jobs, begun anew on each.
    resident: Mutex<Option<Resident>>,
    /// There is no thread, and none to be had.
    exhausted: Notify,
    /// How long a thread may go without taking a turn while there is work.
    stall: Duration,
    grace: Duration,
    watched: AtomicBool,
    jobs: AtomicUsize,
    set_aside: AtomicUsize,
    leaked: AtomicU64,
    panics: AtomicU64,
    closed: watch::Sender<bool>,
}

type Resident = Arc<dyn Fn() -> Pending<()> + Send + Sync>;

/// A thread and its runtime.
struct Worker {
    handle: Handle,
    load: Arc<Load>,
    stop: watch::Sender<bool>,
    ended: watch::Receiver<bool>,
}

/// The jobs of one thread.
#[derive(Default)]
struct Load {
    jobs: AtomicUsize,
    /// The last of them is done.
    idle: Notify,
}

/// How the workers of a server are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkersHealth {
    /// Threads that were set aside because a handler blocked them, and have not come back.
    pub set_aside: usize,
    /// Handlers that panicked.
    pub panics: u64,
    /// Tasks that handlers left running when last looked at.
    pub leaked_tasks: u64,
}

/// The handler panicked; what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked(pub String);

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it panicked: {}", self.0)
    }
}

impl Workers {
    pub(super) fn new(server: &str, limits: &Limits) -> Self {
        let shared = Shared {
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

    /// Does a piece of work for a message of this depth. The handle abandons it. `None`: there is no thread to be had.
    ///
    /// A panic ends the work and nothing else; see [`Workers::caught`] for being told of it.
    pub fn spawn(&self, depth: usize, work: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        let (handle, load) = self.worker()?;
        let job = Job::begin(&self.shared, Some(load));
        let task = handle.spawn(DEPTH.scope(depth + 1, async move {
            let _job = job;
            let _ = Caught(Box::pin(work)).await;
        }));
        self.watch();
        Some(task.abort_handle())
    }

    /// Has every thread do this beside its jobs, from now on: whatever takes a server's messages where they are handled.
    pub(crate) fn reside(&self, resident: impl Fn() -> Pending<()> + Send + Sync + 'static) {
        *self.shared.resident() = Some(Arc::new(resident));
        self.worker();
    }

    /// Takes the first step of some work for a message of this depth, on the present thread, which must be one of
    /// these. Work that is not done by then wants to be spawned: nobody is told when it can go on.
    pub(crate) fn first_step<T>(&self, depth: usize, work: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        let _job = Job::begin(&self.shared, None);
        self.watch();
        DEPTH.sync_scope(depth + 1, || work.poll(&mut Context::from_waker(Waker::noop())))
    }

    /// Resolves when so many threads have been set aside that there is none left.
    pub(crate) async fn exhausted(&self) {
        self.shared.exhausted.notified().await;
    }

    /// Wraps a handler's work, so that its panic becomes a value.
    pub fn caught<T>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Result<T, Panicked>> + Send + 'static
    where
        T: Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        async move {
            let outcome = Caught(Box::pin(work)).await;
            if outcome.is_err() {
                shared.panics.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(server = %shared.server, "a handler panicked");
            }
            outcome
        }
    }

    /// How they are.
    pub fn health(&self) -> WorkersHealth {
        WorkersHealth {
            set_aside: self.shared.set_aside.load(Ordering::Relaxed),
            panics: self.shared.panics.load(Ordering::Relaxed),
            leaked_tasks: self.shared.leaked.load(Ordering::Relaxed),
        }
    }

    /// Ends the present thread as soon as it takes a turn, without waiting.
    pub(super) fn dismiss(&self) {
        self.shared.closed.send_replace(true);
        drop(self.shared.current().take());
    }

    /// Ends the present thread and waits a grace for it.
    pub(super) async fn stop(&self) {
        self.shared.closed.send_replace(true);
        let worker = self.shared.current().take();
        let Some(Worker { handle, stop, mut ended, .. }) = worker else { return };
        self.shared.note_leaks(&handle);
        drop((handle, stop));
        let _ = tokio::time::timeout(self.shared.grace, ended.wait_for(|ended| *ended)).await;
    }

    fn worker(&self) -> Option<(Handle, Arc<Load>)> {
        let mut current = self.shared.current();
        if current.is_none() {
            *current = self.shared.another();
        }
        current.as_ref().map(|worker| (worker.handle.clone(), Arc::clone(&worker.load)))
    }

    /// Sees to it that somebody looks after the thread while there is work.
    fn watch(&self) {
        if self.shared.watched.load(Ordering::SeqCst) || self.shared.watched.swap(true, Ordering::SeqCst) {
            return;
        }
        // Ends by itself: when the server does, or when it has nothing to do.
        self.shared.host.spawn(look_after(Arc::downgrade(&self.shared), self.shared.stall));
    }
}

/// Looks after the present thread until there has been nothing to do for a while.
async fn look_after(weak: Weak<Shared>, stall: Duration) {
    let mut quiet = 0;
    loop {
        if let Some(handle) = weak.upgrade().and_then(|shared| shared.current_handle()) {
            let alive = tokio::time::timeout(stall, handle.spawn(async {})).await.is_ok();
            let Some(shared) = weak.upgrade() else { return };
            if !alive {
                shared.set_aside(&handle);
            } else if shared.is_idle() {
                shared.note_leaks(&handle);
            }
        }
        tokio::time::sleep(stall).await;
        let Some(shared) = weak.upgrade().filter(|shared| !shared.is_closed()) else { return };
        quiet = if shared.is_idle() { quiet + 1 } else { 0 };
        if quiet >= QUIET_LOOKS {
            shared.watched.store(false, Ordering::SeqCst);
            // Work that began just before this relies on being looked after.
            if shared.is_idle() || shared.watched.swap(true, Ordering::SeqCst) {
                return;
            }
            quiet = 0;
        }
    }
}

impl Shared {
    fn current(&self) -> MutexGuard<'_, Option<Worker>> {
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

    fn resident(&self) -> MutexGuard<'_, Option<Resident>> {
        self.resident.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another thread, unless there have been too many.
    fn another(self: &Arc<Self>) -> Option<Worker> {
        let hopeless = self.set_aside.load(Ordering::Relaxed) > MOST_SET_ASIDE;
        if hopeless || self.is_closed() { None } else { Worker::start(self) }
    }

    /// Leaves a thread that takes no turns to itself, if it is still the present one.
    fn set_aside(self: &Arc<Self>, handle: &Handle) {
        let mut current = self.current();
        if current.as_ref().is_some_and(|worker| worker.handle.id() == handle.id()) {
            *current = None;
            self.set_aside.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(server = %self.server, "a handler blocks its thread; the thread was set aside");
            if self.resident().is_some() {
                *current = self.another();
                if current.is_none() {
                    self.exhausted.notify_one();
                }
            }
        }
    }

    /// Whatever lives on a thread without a job is something a handler left behind.
    fn note_leaks(&self, handle: &Handle) {
        let expected = self.jobs.load(Ordering::Acquire) + usize::from(self.resident().is_some());
        let left = handle.metrics().num_alive_tasks().saturating_sub(expected) as u64;
        if self.leaked.swap(left, Ordering::Relaxed) < left {
            tracing::warn!(server = %self.server, tasks = left, "handlers left tasks running");
        }
    }
}

impl Worker {
    fn start(shared: &Arc<Shared>) -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let handle = runtime.handle().clone();
        let (stop, mut stopped) = watch::channel(false);
        let (done, ended) = watch::channel(false);
        let weak = Arc::downgrade(shared);
        let name = format!("wharf {}", shared.server.chars().take(8).collect::<String>());
        let id = handle.id();
        let load = Arc::new(Load::default());
        let (unfinished, mut closed) = (Arc::clone(&load), shared.closed.subscribe());
        let resident = shared.resident().clone();
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            if let Some(resident) = resident {
                runtime.spawn(resident());
            }
            // Over when the sender is dropped. A thread that was set aside first ends what it had begun.
            runtime.block_on(async move {
                while stopped.changed().await.is_ok() {}
                tokio::select! {
                    () = unfinished.done() => {}
                    _ = closed.wait_for(|closed| *closed) => {}
                }
            });
            runtime.shutdown_background();
            // A thread that was set aside and has come back is no longer missed.
            if let Some(shared) = weak.upgrade() {
                let present = shared.current().as_ref().is_some_and(|worker| worker.handle.id() == id);
                if !present && !shared.is_closed() {
                    let _ = shared.set_aside.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
                }
            }
            let _ = done.send(true);
        });
        thread.ok().map(|_| Self { handle, load, stop, ended })
    }
}

impl Load {
    /// Resolves when there is no job left.
    async fn done(&self) {
        while self.jobs.load(Ordering::Acquire) > 0 {
            self.idle.notified().await;
        }
    }
}

/// Counts a piece of work for as long as it lives, for its server and for its thread if it stays there.
struct Job {
    shared: Arc<Shared>,
    load: Option<Arc<Load>>,
}

impl Job {
    fn begin(shared: &Arc<Shared>, load: Option<Arc<Load>>) -> Self {
        shared.jobs.fetch_add(1, Ordering::SeqCst);
        if let Some(load) = &load {
            load.jobs.fetch_add(1, Ordering::AcqRel);
        }
        Self { shared: Arc::clone(shared), load }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.shared.jobs.fetch_sub(1, Ordering::SeqCst);
        if let Some(load) = &self.load
            && load.jobs.fetch_sub(1, Ordering::AcqRel) == 1
        {
            load.idle.notify_one();
        }
    }
}

/// A future whose panic is its outcome.
pub(super) struct Caught<F>(pub Pin<Box<F>>);

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(Panicked(words(&*payload)))),
        }
    }
}

fn words(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
