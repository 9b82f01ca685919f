//! Runs one call to completion and shows its progress or the status of its task.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use wharf_client::{CallError, Connection, RequestOptions, Started, TaskHandle, TaskOptions, TaskSink};
use wharf_spec::UntrustedText;
use wharf_wire::{Era, Progress, RawJson, Task, TaskStatus, ToolResult};

use wharf_terminal::progress::ProgressText;
use wharf_terminal::session::CommandSession;

/// Determines whether a call runs as a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskMode {
    /// The server decides.
    IfServerWants,
    /// The tool requires a task.
    Needed,
    /// Requested with `--task`: wait without a time limit.
    Wished,
}

/// A call ready to be sent.
pub struct PreparedCall<'a> {
    pub session: &'a CommandSession,
    pub connection: &'a Connection,
    pub tool: &'a str,
    pub arguments: &'a RawJson,
    pub as_task: TaskMode,
    /// Maximum time without a response or progress, if set.
    pub timeout: Option<Duration>,
}

/// A progress update of a call.
enum CallUpdate {
    Progress(Progress),
    Task { status: TaskStatus, message: Option<String> },
}

/// Receives the updates of a call.
type UpdateSink = Arc<dyn Fn(CallUpdate) + Send + Sync>;

impl PreparedCall<'_> {
    /// Sends the call and shows its progress until it finishes.
    ///
    /// Dropping the future cancels the call. A task is cancelled before the server closes.
    pub async fn run(&self) -> Result<ToolResult, CallError> {
        let (latest, mut update) = watch::channel(None);
        let head = format!("{} · {}", self.connection.facts().name, UntrustedText::new(self.tool));
        let answer = self.send(self.reporter(head.clone(), latest));
        tokio::pin!(answer);
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answer => break answer,
                Ok(()) = update.changed() => {
                    if let Some(update) = &*update.borrow_and_update() {
                        self.show(&head, update);
                    }
                }
            }
        };
        self.session.console.clear_status();
        answer
    }

    /// Prints every update with `--debug`. Otherwise keeps only the latest one, so that a flood of updates costs
    /// nothing.
    fn reporter(&self, head: String, latest: watch::Sender<Option<CallUpdate>>) -> UpdateSink {
        let console = Arc::clone(&self.session.console);
        let says_all = console.mode.debug && !console.shows_status();
        Arc::new(move |update| match says_all {
            true => console.say(format_args!("{head}  {}", update_text(&update))),
            false => drop(latest.send_replace(Some(update))),
        })
    }

    async fn send(&self, report: UpdateSink) -> Result<ToolResult, CallError> {
        let reports = report.clone();
        let mut options = RequestOptions::default().progress(move |progress| reports(CallUpdate::Progress(progress)));
        options.timeout = self.timeout;
        // In the handshake era a call becomes a task only on request. Later servers decide by themselves.
        let is_plain = self.as_task == TaskMode::IfServerWants;
        if is_plain && self.connection.facts().revision.era() == Era::Handshake {
            return self.connection.call_tool(self.tool, self.arguments, options).await;
        }
        let mut starting = TaskOptions::default();
        starting.request = options;
        match self.connection.start_task(self.tool, self.arguments, starting).await? {
            Started::Finished(answer) => Ok(*answer),
            Started::Task(task) => self.follow(*task, report).await,
        }
    }

    /// Waits for a task. Dropping the future cancels it.
    async fn follow(&self, task: TaskHandle, report: UpdateSink) -> Result<ToolResult, CallError> {
        let following = TaskCancelGuard { session: self.session, task: Arc::new(task) };
        let task = following.task.clone();
        let watch: Option<TaskSink> = Some(Arc::new(move |task: &Task| {
            report(CallUpdate::Task { status: task.status, message: task.message.clone() });
        }));
        let answer = match self.as_task {
            TaskMode::Wished => task.finish(watch).await,
            TaskMode::Needed | TaskMode::IfServerWants => task.finish_within(self.session.call_max(), watch).await,
        };
        drop(following);
        answer
    }

    fn show(&self, head: &str, update: &CallUpdate) {
        let console = &self.session.console;
        if console.shows_status() {
            let shown = match update {
                CallUpdate::Progress(progress) => progress_text(progress).with_bar(),
                CallUpdate::Task { .. } => update_text(update),
            };
            console.show_status(&format!("{head}  {shown}"));
        }
    }
}

/// Cancels a task on drop unless it is over.
struct TaskCancelGuard<'a> {
    session: &'a CommandSession,
    task: Arc<TaskHandle>,
}

impl Drop for TaskCancelGuard<'_> {
    fn drop(&mut self) {
        if !self.task.has_ended() {
            let task = self.task.clone();
            self.session.on_shutdown(async move {
                // Ignore a failure: the server is about to be stopped.
                let _ = task.cancel().await;
            });
        }
    }
}

fn update_text(update: &CallUpdate) -> String {
    match update {
        CallUpdate::Progress(progress) => progress_text(progress).to_string(),
        CallUpdate::Task { status, message } => {
            let message =
                message.as_ref().map(|message| format!(": {}", UntrustedText::new(message.as_str()).truncate(200)));
            format!("task {status}{}", message.unwrap_or_default())
        }
    }
}

/// Returns the progress for display.
pub fn progress_text(progress: &Progress) -> ProgressText<'_> {
    ProgressText { done: progress.progress, total: progress.total, message: progress.message.as_deref() }
}
