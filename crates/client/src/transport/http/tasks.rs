//! Everything a link has under way, so that all of it can be ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// What a task is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Errand {
    /// One call's request and its answer.
    Call(u64),
    /// A message that gets no answer.
    Word(u64),
    /// What goes on as long as the link does.
    Upkeep(u64),
}

pub(super) struct Tasks {
    runtime: Handle,
    running: Arc<Mutex<Running>>,
    /// One of them has ended.
    ended: Arc<Notify>,
}

#[derive(Default)]
struct Running {
    tasks: HashMap<Errand, Task>,
    numbered: u64,
    /// Nothing is begun any more.
    closed: bool,
}

struct Task {
    /// Nothing until it has been spawned.
    handle: Option<AbortHandle>,
    /// It was to be ended before that.
    unwanted: bool,
    left: Arc<AtomicBool>,
}

impl Task {
    /// What ends it, once it has been spawned; until then that is noted.
    fn renounce(&mut self) -> Option<AbortHandle> {
        self.unwanted = true;
        self.handle.clone()
    }
}

/// Whether any of a call's bytes may have left.
#[derive(Clone, Default)]
pub(super) struct Departure(Arc<AtomicBool>);

impl Departure {
    /// From now on they may have.
    pub fn note(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// It is known that they have not.
    pub fn take_back(&self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Tasks {
    pub fn new(runtime: Handle) -> Self {
        Self { runtime, running: Arc::default(), ended: Arc::default() }
    }

    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Begins a call's exchange, which is told where to note that it has left.
    pub fn call<F: Future<Output = ()> + Send + 'static>(&self, id: u64, work: impl FnOnce(Departure) -> F) {
        let departure = Departure::default();
        let left = departure.0.clone();
        self.begin(|_| Errand::Call(id), left, work(departure));
    }

    /// Begins to send a message that gets no answer.
    pub fn word(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.begin(Errand::Word, Arc::default(), work);
    }

    /// Begins something that goes on as long as the link does.
    pub fn upkeep(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.begin(Errand::Upkeep, Arc::default(), work);
    }

    fn begin(
        &self,
        name: impl FnOnce(u64) -> Errand,
        left: Arc<AtomicBool>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let errand = {
            let mut running = locked(&self.running);
            if running.closed {
                return;
            }
            running.numbered += 1;
            let errand = name(running.numbered);
            running.tasks.insert(errand, Task { handle: None, unwanted: false, left });
            errand
        };
        let end = End { errand, running: self.running.clone(), ended: self.ended.clone() };
        // In a place of its own: a runtime moves what it runs about, and this is large.
        let work = Box::pin(work);
        // Not under the lock: a runtime that is gone drops the task at once, and that takes it off the list.
        let task = self.runtime.spawn(async move {
            let _end = end;
            work.await;
        });
        if let Some(entered) = locked(&self.running).tasks.get_mut(&errand) {
            entered.handle = Some(task.abort_handle());
            if entered.unwanted {
                task.abort();
            }
        }
    }

    /// Ends a call's exchange, if it has one.
    pub fn abort_call(&self, id: u64) {
        let handle = locked(&self.running).tasks.get_mut(&Errand::Call(id)).and_then(Task::renounce);
        handle.iter().for_each(AbortHandle::abort);
    }

    /// Whether any byte of a call may have left; one that is over has.
    pub fn may_have_left(&self, id: u64) -> bool {
        let running = locked(&self.running);
        running.tasks.get(&Errand::Call(id)).is_none_or(|task| task.left.load(Ordering::Acquire))
    }

    /// Ends everything, and begins nothing more.
    pub fn abort_all(&self) {
        locked(&self.running).closed = true;
        self.abort_where(|_| true);
    }

    /// Ends every call's exchange.
    pub fn abort_calls(&self) {
        self.abort_where(|errand| matches!(errand, Errand::Call(_)));
    }

    fn abort_where(&self, unwanted: impl Fn(&Errand) -> bool) {
        let handles: Vec<AbortHandle> = {
            let mut running = locked(&self.running);
            let unwanted = running.tasks.iter_mut().filter(|(errand, _)| unwanted(errand));
            unwanted.filter_map(|(_, task)| task.renounce()).collect()
        };
        // Not under the lock: what ends takes itself off the list.
        handles.iter().for_each(AbortHandle::abort);
    }

    /// Resolves when nothing is under way.
    pub async fn idle(&self) {
        self.ended_where(|_| true).await;
    }

    /// Resolves when every message that gets no answer has been sent.
    pub async fn all_said(&self) {
        self.ended_where(|errand| matches!(errand, Errand::Word(_))).await;
    }

    async fn ended_where(&self, awaited: impl Fn(&Errand) -> bool) {
        loop {
            let ended = self.ended.notified();
            if !locked(&self.running).tasks.keys().any(&awaited) {
                return;
            }
            ended.await;
        }
    }
}

/// Takes a task off the list when it is over, however it ends.
struct End {
    errand: Errand,
    running: Arc<Mutex<Running>>,
    ended: Arc<Notify>,
}

impl Drop for End {
    fn drop(&mut self) {
        locked(&self.running).tasks.remove(&self.errand);
        self.ended.notify_waiters();
    }
}

fn locked(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}
