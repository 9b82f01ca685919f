//! Writes down every decision and every call, so that afterwards somebody can tell what was done and who allowed it.
//!
//! Arguments may hold secrets: of them only their names, their size and a keyed digest are written. The key stays beside
//! the log, so that the log alone does not let short arguments be guessed.

mod key;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use wharf_client::CallError;
use wharf_json::{Bounds, Raw, members};
use wharf_spec::{ToolId, Untrusted};
use wharf_store::{Journal, JournalOptions, OpenError};
use wharf_tools::Caller;

pub(crate) use key::{AuditKey, KeyError};

use crate::error::HostError;
use crate::events::{Crier, Event};

/// Entries that wait to be written; more are counted as lost.
const WAITING: usize = 4096;
/// Names of arguments in one entry, and characters of each.
const MOST_NAMES: usize = 32;
const LONGEST_NAME: usize = 64;

/// The audit log. Entries are written in order by a thread that may block.
pub(crate) struct Audit {
    entries: mpsc::Sender<Task>,
    lost: Arc<AtomicU64>,
    key: AuditKey,
}

enum Task {
    Write(Box<Entry>),
    Flush(oneshot::Sender<()>),
}

/// Why there is no audit log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("no thread to write it: {0}")]
    Thread(#[from] std::io::Error),
}

/// How a call ended.
pub(crate) enum Ended<'a> {
    Answered,
    /// With an answer that is marked as an error.
    ToolFailed,
    Failed(&'a HostError),
    /// Its caller did not wait for it.
    Withdrawn,
}

/// One line of the log.
#[derive(Debug, Serialize)]
struct Entry {
    schema: u32,
    at_ms: u64,
    #[serde(flatten)]
    what: What,
    caller: String,
    /// Nobody's, for tools of the host's own.
    server: Option<String>,
    tool: String,
    arguments: Shape,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum What {
    Decision { verdict: &'static str, reason: String },
    Call { success: bool, duration_ms: u64, error: Option<String> },
}

/// What is written of arguments.
#[derive(Debug, Serialize)]
struct Shape {
    names: Vec<String>,
    bytes: usize,
    /// HMAC-SHA-256 of the raw arguments under the key of this state directory.
    hmac_sha256: String,
}

/// Where the log of a state directory is.
pub(crate) fn path(state: &Path) -> PathBuf {
    state.join("audit.jsonl")
}

impl Audit {
    /// Opens the log and begins to write. A write that fails is told as an event, once until one succeeds.
    pub fn open(path: &Path, crier: Arc<Crier>) -> Result<Self, AuditError> {
        let journal = Journal::open(path, JournalOptions::default())?;
        let key = AuditKey::open(&path.with_file_name("audit.key"))?;
        let (entries, waiting) = mpsc::channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        // A thread of its own: it lasts as long as the host, and a runtime waits for its blocking threads to end.
        let writer = std::thread::Builder::new().name("wharf-audit".to_owned());
        writer.spawn(move || write(&journal, waiting, &counted, &crier))?;
        Ok(Self { entries, lost, key })
    }

    /// Writes down what was decided.
    pub fn decided(
        &self,
        tool: (Option<&str>, &str),
        arguments: &Raw,
        caller: &Caller,
        (verdict, reason): (&'static str, &str),
    ) {
        self.note(tool, arguments, caller, What::Decision { verdict, reason: reason.to_owned() });
    }

    /// Writes down how a call ended.
    pub fn called(&self, tool: &ToolId, arguments: &Raw, caller: &Caller, (ended, took): (&Ended<'_>, Duration)) {
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let success = matches!(ended, Ended::Answered);
        let error = match ended {
            Ended::Answered => None,
            Ended::ToolFailed => Some("the tool said that it failed".to_owned()),
            Ended::Failed(error) => Some(told(error)),
            Ended::Withdrawn => Some("withdrawn by the caller; perhaps it was carried out".to_owned()),
        };
        let tool = (Some(tool.server.as_str()), &*tool.tool);
        self.note(tool, arguments, caller, What::Call { success, duration_ms, error });
    }

    fn note(&self, (server, tool): (Option<&str>, &str), arguments: &Raw, caller: &Caller, what: What) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let entry = Entry {
            schema: 2,
            at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            what,
            caller: caller.name.to_string(),
            server: server.map(str::to_owned),
            tool: Untrusted::new(tool).shortened(200).to_string(),
            arguments: shape(arguments, &self.key),
        };
        if self.entries.try_send(Task::Write(Box::new(entry))).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until everything so far is written.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.entries.send(Task::Flush(done)).await.is_ok() {
            // Fails only when the writer is gone, and then nothing more is written.
            let _ = flushed.await;
        }
    }
}

/// An error as it is written. A server that refuses often repeats what it was given, so of that only the code.
fn told(error: &HostError) -> String {
    match error {
        HostError::Call { error: CallError::Refused(refused), .. } => format!("refused with code {}", refused.code),
        other => Untrusted::new(other.to_string()).shortened(500).to_string(),
    }
}

fn shape(arguments: &Raw, key: &AuditKey) -> Shape {
    let names = members(arguments, &Bounds::default()).unwrap_or_default();
    let shown = |name: &str| Untrusted::new(name).shortened(LONGEST_NAME).to_string();
    Shape {
        names: names.iter().take(MOST_NAMES).map(|(name, _)| shown(name)).collect(),
        bytes: arguments.as_bytes().len(),
        hmac_sha256: key.digest(arguments.as_bytes()),
    }
}

/// Writes until nobody can give it anything any more.
fn write(journal: &Journal, mut waiting: mpsc::Receiver<Task>, lost: &AtomicU64, crier: &Crier) {
    let mut failing = false;
    while let Some(task) = waiting.blocking_recv() {
        let written = match task {
            Task::Write(entry) => journal.append(&entry).map_err(|error| error.to_string()),
            Task::Flush(done) => {
                let synced = journal.sync().map_err(|error| error.to_string());
                // Nobody may be waiting any more.
                let _ = done.send(());
                synced
            }
        };
        let dropped = lost.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            crier.tell(Event::AuditFailed { text: format!("{dropped} entries came too fast and were lost") });
            let _ = journal.append(&serde_json::json!({ "schema": 2, "event": "lost", "entries": dropped }));
        }
        if let (Err(text), false) = (&written, failing) {
            tracing::error!("the audit log cannot be written: {text}");
            crier.tell(Event::AuditFailed { text: text.clone() });
        }
        failing = written.is_err();
    }
}
