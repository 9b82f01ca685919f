//! The tasks of a link, so that all of them can be ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tracing::{Instrument as _, Span};

/// The purpose of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TaskPurpose {
    /// Request and response of one call.
    Call(u64),
    /// A message that gets no response.
    Word(u64),
    /// A task that runs as long as the link.
    Upkeep(u64),
}

pub(super) struct LinkTasks {
    runtime: Handle,
    /// The span of the connection.
    span: Span,
    running: Arc<Mutex<LinkTaskTable>>,
    /// Signalled when a task has ended.
    ended: Arc<Notify>,
}

#[derive(Default)]
struct LinkTaskTable {
    tasks: HashMap<TaskPurpose, LinkTaskEntry>,
    numbered: u64,
    /// No new tasks are started.
    closed: bool,
}

struct LinkTaskEntry {
    /// `None` until the task has been spawned.
    handle: Option<AbortHandle>,
    /// True if it was aborted before it was spawned.
    unwanted: bool,
    left: Arc<AtomicBool>,
}

impl LinkTaskEntry {
    /// Marks the task as aborted and returns its handle, if it has been spawned.
    fn mark_aborted(&mut self) -> Option<AbortHandle> {
        self.unwanted = true;
        self.handle.clone()
    }
}

/// Flag that records if any byte of a call's request may have been sent.
#[derive(Clone, Default)]
pub(super) struct SentFlag(Arc<AtomicBool>);

impl SentFlag {
    /// Records that bytes may have been sent.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Records that no bytes were sent.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }
}

impl LinkTasks {
    pub fn new(runtime: Handle, span: Span) -> Self {
        Self { runtime, span, running: Arc::default(), ended: Arc::default() }
    }

    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Starts the task of a call, in the caller's span, and passes it the flag that records the sending.
    pub fn spawn_call<F: Future<Output = ()> + Send + 'static>(&self, id: u64, work: impl FnOnce(SentFlag) -> F) {
        let sent_flag = SentFlag::default();
        let left = sent_flag.0.clone();
        self.spawn_task(|_| TaskPurpose::Call(id), left, work(sent_flag).in_current_span());
    }

    /// Starts the task of a message that gets no response.
    pub fn spawn_message(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.spawn_task(TaskPurpose::Word, Arc::default(), work.instrument(self.span.clone()));
    }

    /// Starts a task that runs as long as the link.
    pub fn spawn_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.spawn_task(TaskPurpose::Upkeep, Arc::default(), work.instrument(self.span.clone()));
    }

    fn spawn_task(
        &self,
        name: impl FnOnce(u64) -> TaskPurpose,
        left: Arc<AtomicBool>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let purpose = {
            let mut running = lock(&self.running);
            if running.closed {
                return;
            }
            running.numbered += 1;
            let purpose = name(running.numbered);
            running.tasks.insert(purpose, LinkTaskEntry { handle: None, unwanted: false, left });
            purpose
        };
        let end = LinkTaskGuard { purpose, running: self.running.clone(), ended: self.ended.clone() };
        // Boxed: the runtime moves its tasks, and this one is large.
        let work = Box::pin(work);
        // Not under the lock: a runtime that has shut down drops the task at once, which removes it from the list.
        let task = self.runtime.spawn(async move {
            let _end = end;
            work.await;
        });
        if let Some(entered) = lock(&self.running).tasks.get_mut(&purpose) {
            entered.handle = Some(task.abort_handle());
            if entered.unwanted {
                task.abort();
            }
        }
    }

    /// Aborts a call's task, if it has one.
    pub fn abort_call(&self, id: u64) {
        let handle = lock(&self.running).tasks.get_mut(&TaskPurpose::Call(id)).and_then(LinkTaskEntry::mark_aborted);
        handle.iter().for_each(AbortHandle::abort);
    }

    /// Reports whether any byte of a call may have been sent. True for a call that has ended.
    pub fn may_have_been_sent(&self, id: u64) -> bool {
        let running = lock(&self.running);
        running.tasks.get(&TaskPurpose::Call(id)).is_none_or(|task| task.left.load(Ordering::Acquire))
    }

    /// Aborts all tasks and starts no more.
    pub fn abort_all(&self) {
        lock(&self.running).closed = true;
        self.abort_where(|_| true);
    }

    /// Aborts the tasks of all calls.
    pub fn abort_calls(&self) {
        self.abort_where(|purpose| matches!(purpose, TaskPurpose::Call(_)));
    }

    fn abort_where(&self, unwanted: impl Fn(&TaskPurpose) -> bool) {
        let handles: Vec<AbortHandle> = {
            let mut running = lock(&self.running);
            let unwanted = running.tasks.iter_mut().filter(|(purpose, _)| unwanted(purpose));
            unwanted.filter_map(|(_, task)| task.mark_aborted()).collect()
        };
        // Not under the lock: a task removes itself from the list when it ends.
        handles.iter().for_each(AbortHandle::abort);
    }

    /// Waits until no task is running.
    pub async fn wait_until_idle(&self) {
        self.wait_until_ended(|_| true).await;
    }

    /// Waits until all messages without a response have been sent.
    pub async fn wait_until_sent(&self) {
        self.wait_until_ended(|purpose| matches!(purpose, TaskPurpose::Word(_))).await;
    }

    async fn wait_until_ended(&self, awaited: impl Fn(&TaskPurpose) -> bool) {
        loop {
            let ended = self.ended.notified();
            if !lock(&self.running).tasks.keys().any(&awaited) {
                return;
            }
            ended.await;
        }
    }
}

/// Removes a task from the list when dropped, however the task ends.
struct LinkTaskGuard {
    purpose: TaskPurpose,
    running: Arc<Mutex<LinkTaskTable>>,
    ended: Arc<Notify>,
}

impl Drop for LinkTaskGuard {
    fn drop(&mut self) {
        lock(&self.running).tasks.remove(&self.purpose);
        self.ended.notify_waiters();
    }
}

fn lock(running: &Mutex<LinkTaskTable>) -> MutexGuard<'_, LinkTaskTable> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}
