//! Audit log of every permission decision and every call.
//!
//! Arguments may contain secrets: the log holds only their names, their size and a keyed digest. The key is stored in a
//! separate file, so that short arguments cannot be guessed from the log alone.

mod key;
mod sink;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use wharf_client::CallError;
use wharf_json::{JsonLimits, RawJson, object_members};
use wharf_spec::{ToolId, UntrustedText};
use wharf_store::{Journal, JournalOpenError, JournalOptions};
use wharf_tools::ToolCaller;

pub(crate) use key::{AuditKey, AuditKeyError};
pub use sink::{AuditMode, AuditSink};

use crate::error::HostError;
use crate::events::{Event, EventBus};
use sink::AuditDestinations;

/// Capacity of the queue to the writer. Entries beyond it are counted as lost.
const MAX_QUEUED_ENTRIES: usize = 16_384;
/// Maximum number of entries that are written at once.
const MAX_BATCH_ENTRIES: usize = 1024;
/// Time for which entries are collected, if the last ones were written less than this ago.
const BATCH_DELAY: Duration = Duration::from_millis(1);
/// Maximum number of argument names in one entry, and maximum characters of each.
const MAX_ARGUMENT_NAMES: usize = 32;
const MAX_ARGUMENT_NAME_CHARS: usize = 64;

/// The audit log. A dedicated thread writes the entries in order.
pub(crate) struct AuditLog {
    entries: mpsc::Sender<AuditTask>,
    lost: Arc<AtomicU64>,
    key: AuditKey,
    mode: AuditMode,
}

enum AuditTask {
    Write(Box<AuditEntry>),
    /// Writes an entry that a call waits for.
    WriteAndReport(Box<AuditEntry>, oneshot::Sender<Result<(), String>>),
    Flush(oneshot::Sender<()>),
}

/// Settings of the audit log.
#[derive(Clone, Default)]
pub(crate) struct AuditOptions {
    pub mode: AuditMode,
    pub sink: Option<Arc<dyn AuditSink>>,
}

/// Errors of opening the audit log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    #[error(transparent)]
    Open(#[from] JournalOpenError),
    #[error(transparent)]
    Key(#[from] AuditKeyError),
    #[error("cannot start the audit log thread: {0}")]
    Thread(#[from] std::io::Error),
    #[error("the audit log is required, but there is neither a state directory nor a sink")]
    NoDestination,
}

/// The outcome of a call.
pub(crate) enum AuditedCallOutcome<'a> {
    Answered,
    /// The result is marked as an error.
    ToolFailed,
    Failed(&'a HostError),
    /// The caller stopped waiting.
    Withdrawn,
}

/// The end of a call.
#[derive(Clone, Copy)]
pub(crate) struct AuditedCallEnd<'a> {
    pub outcome: &'a AuditedCallOutcome<'a>,
    pub took: Duration,
}

/// A permission decision.
pub(crate) struct AuditedDecision {
    pub decision: &'static str,
    pub reason: String,
}

/// The tool of an entry.
#[derive(Clone, Copy)]
pub(crate) struct AuditedTool<'a> {
    /// `None` for the host's own tools.
    pub server: Option<&'a str>,
    pub name: &'a str,
}

/// One line of the log.
#[derive(Debug, Serialize)]
struct AuditEntry {
    schema: u32,
    at_ms: u64,
    #[serde(flatten)]
    what: AuditEvent,
    caller: String,
    /// `None` for the user who runs the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    /// `None` for the host's own tools.
    server: Option<String>,
    tool: String,
    arguments: ArgumentSummary,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum AuditEvent {
    Decision { verdict: &'static str, reason: String },
    Begin {},
    Call { success: bool, duration_ms: u64, error: Option<String> },
}

/// Summary of a call's arguments.
#[derive(Debug, Serialize)]
struct ArgumentSummary {
    names: Vec<String>,
    bytes: usize,
    /// HMAC-SHA-256 of the raw arguments under the key of this state directory.
    hmac_sha256: String,
}

/// Returns the path of the log in a state directory.
pub(crate) fn log_path(state: &Path) -> PathBuf {
    state.join("audit.jsonl")
}

impl AuditLog {
    /// Opens the log and starts the writer, if it has a destination: a file in the state directory, or a sink. A failed
    /// write is reported as an event, once until a write succeeds.
    pub fn open(
        path: Option<&Path>,
        options: AuditOptions,
        event_bus: Arc<EventBus>,
    ) -> Result<Option<Self>, AuditError> {
        let AuditOptions { mode, sink } = options;
        if path.is_none() && sink.is_none() {
            return if mode == AuditMode::Required { Err(AuditError::NoDestination) } else { Ok(None) };
        }
        let journal = path.map(|path| Journal::open(path, JournalOptions::default())).transpose()?;
        let key = match path {
            Some(path) => AuditKey::open(&path.with_file_name("audit.key"))?,
            None => AuditKey::generate()?,
        };
        let destinations = AuditDestinations { journal, sink };
        let (entries, waiting) = mpsc::channel(MAX_QUEUED_ENTRIES);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        // A dedicated thread, because it lives as long as the host and a runtime waits for its blocking threads on
        // shutdown.
        wharf_threads::start_thread("wharf-audit", move || run_writer(&destinations, waiting, &counted, &event_bus))?;
        Ok(Some(Self { entries, lost, key, mode }))
    }

    /// Records a permission decision.
    pub fn record_decision(
        &self,
        tool: AuditedTool<'_>,
        arguments: &RawJson,
        caller: &ToolCaller,
        AuditedDecision { decision, reason }: AuditedDecision,
    ) {
        self.record(tool, arguments, caller, AuditEvent::Decision { verdict: decision, reason });
    }

    /// Reports whether a call needs a written entry before it is sent.
    pub fn is_required(&self) -> bool {
        self.mode == AuditMode::Required
    }

    /// Writes that a call is about to be sent.
    ///
    /// # Errors
    ///
    /// [`HostError::NotAudited`] if the entry could not be written. The call must not be made then.
    pub async fn write_begin(&self, tool: &ToolId, arguments: &RawJson, caller: &ToolCaller) -> Result<(), HostError> {
        let audited = AuditedTool { server: Some(tool.server.as_str()), name: &tool.tool };
        let entry = Box::new(self.build_entry(audited, arguments, caller, AuditEvent::Begin {}));
        let (done, written) = oneshot::channel();
        let failed = |reason: String| HostError::NotAudited { server: tool.server.clone(), reason };
        let stopped = || failed("the audit log has stopped".to_owned());
        self.entries.send(AuditTask::WriteAndReport(entry, done)).await.map_err(|_| stopped())?;
        written.await.map_err(|_| stopped())?.map_err(failed)
    }

    /// Records the end of a call.
    pub fn record_call(
        &self,
        tool: &ToolId,
        arguments: &RawJson,
        caller: &ToolCaller,
        AuditedCallEnd { outcome, took }: AuditedCallEnd<'_>,
    ) {
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let success = matches!(outcome, AuditedCallOutcome::Answered);
        let error = match outcome {
            AuditedCallOutcome::Answered => None,
            AuditedCallOutcome::ToolFailed => Some("the tool returned an error".to_owned()),
            AuditedCallOutcome::Failed(error) => Some(describe_error(error)),
            AuditedCallOutcome::Withdrawn => Some("cancelled by the caller (may have executed)".to_owned()),
        };
        let tool = AuditedTool { server: Some(tool.server.as_str()), name: &tool.tool };
        self.record(tool, arguments, caller, AuditEvent::Call { success, duration_ms, error });
    }

    fn record(&self, tool: AuditedTool<'_>, arguments: &RawJson, caller: &ToolCaller, what: AuditEvent) {
        let entry = Box::new(self.build_entry(tool, arguments, caller, what));
        if self.entries.try_send(AuditTask::Write(entry)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn build_entry(
        &self,
        tool: AuditedTool<'_>,
        arguments: &RawJson,
        caller: &ToolCaller,
        what: AuditEvent,
    ) -> AuditEntry {
        let AuditedTool { server, name: tool } = tool;
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        AuditEntry {
            schema: 2,
            at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            what,
            caller: caller.name.to_string(),
            principal: caller.principal.client_id().map(|id| UntrustedText::new(id).truncate(200).to_string()),
            server: server.map(str::to_owned),
            tool: UntrustedText::new(tool).truncate(200).to_string(),
            arguments: summarize_arguments(arguments, &self.key),
        }
    }

    /// Waits until all entries so far are written.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.entries.send(AuditTask::Flush(done)).await.is_ok() {
            // Fails only if the writer has stopped, and then no more entries are written.
            let _ = flushed.await;
        }
    }
}

/// Formats an error for the log. Servers often repeat their input in an error, so only the code of a refusal is logged.
fn describe_error(error: &HostError) -> String {
    match error {
        HostError::Call { error: CallError::ErrorResponse(refused), .. } => {
            format!("refused by the server (code {})", refused.code)
        }
        other => UntrustedText::new(other.to_string()).truncate(500).to_string(),
    }
}

fn summarize_arguments(arguments: &RawJson, key: &AuditKey) -> ArgumentSummary {
    let names = object_members(arguments, &JsonLimits::default()).unwrap_or_default();
    let shown = |name: &str| UntrustedText::new(name).truncate(MAX_ARGUMENT_NAME_CHARS).to_string();
    ArgumentSummary {
        names: names.iter().take(MAX_ARGUMENT_NAMES).map(|(name, _)| shown(name)).collect(),
        bytes: arguments.as_bytes().len(),
        hmac_sha256: key.digest(arguments.as_bytes()),
    }
}

/// Writes entries until all senders have been dropped.
fn run_writer(
    destinations: &AuditDestinations,
    mut waiting: mpsc::Receiver<AuditTask>,
    lost: &AtomicU64,
    event_bus: &EventBus,
) {
    let mut failing = false;
    let mut last_write = None::<Instant>;
    while let Some(first) = waiting.blocking_recv() {
        let is_busy = last_write.is_some_and(|last| last.elapsed() < BATCH_DELAY);
        if is_busy && matches!(first, AuditTask::Write(_)) && waiting.len() < MAX_BATCH_ENTRIES {
            // Each write locks and opens files, which costs more than the entries.
            std::thread::sleep(BATCH_DELAY);
        }
        let mut tasks = vec![first];
        while tasks.len() < MAX_BATCH_ENTRIES
            && let Ok(task) = waiting.try_recv()
        {
            tasks.push(task);
        }
        let written = write_batch(destinations, tasks);
        last_write = Some(Instant::now());
        let dropped = lost.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            event_bus.publish(Event::AuditFailed { text: format!("{dropped} audit entries were lost (queue full)") });
            let _ = write_entry(destinations, &serde_json::json!({ "schema": 2, "event": "lost", "entries": dropped }));
        }
        if let (Err(text), false) = (&written, failing) {
            tracing::error!("writing the audit log failed: {text}");
            event_bus.publish(Event::AuditFailed { text: text.clone() });
        }
        failing = written.is_err();
    }
}

/// Writes the entries of tasks, and then reports to those that wait. A flush comes after the entries before it.
fn write_batch(destinations: &AuditDestinations, tasks: Vec<AuditTask>) -> Result<(), String> {
    let encode = |entry: &AuditEntry| serde_json::value::to_raw_value(entry).map_err(|error| error.to_string());
    let entries = tasks.iter().filter_map(|task| match task {
        AuditTask::Write(entry) | AuditTask::WriteAndReport(entry, _) => Some(encode(entry)),
        AuditTask::Flush(_) => None,
    });
    let mut written = entries.collect::<Result<Vec<_>, _>>().and_then(|entries| match entries.is_empty() {
        true => Ok(()),
        false => destinations.write(&entries),
    });
    for task in tasks {
        // The receiver of a task's end may have been dropped.
        match task {
            AuditTask::Write(_) => {}
            AuditTask::WriteAndReport(_, done) => drop(done.send(written.clone())),
            AuditTask::Flush(done) => {
                written = written.and(destinations.sync());
                let _ = done.send(());
            }
        }
    }
    written
}

fn write_entry(destinations: &AuditDestinations, entry: &impl Serialize) -> Result<(), String> {
    let entry = serde_json::value::to_raw_value(entry).map_err(|error| error.to_string())?;
    destinations.write(&[entry])
}
