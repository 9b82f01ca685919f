//! The log files of servers: what each writes to stderr, and when its process began and ended.
//!
//! `logs/<server>.log` beneath the state directory, and `.log.1` before it. Lines are handed to a thread that may block,
//! so that neither a slow disk nor a full one reaches a server or a call: what cannot be written is lost, and counted.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use tokio::sync::{mpsc, oneshot};
use wharf_client::{ProcessLog, ProcessNote};
use wharf_spec::{Shown, Timestamp};
use wharf_store::LogFile;

/// Lines that wait to be written; more are lost.
const WAITING: usize = 1024;
/// Bytes of a line that are kept.
const LONGEST_LINE: usize = 8 << 10;
/// What one file may weigh before the next is begun.
const MOST_BYTES: u64 = 1 << 20;
/// The most files that are kept open.
const MOST_OPEN: usize = 256;

/// Writes the log files of servers. Nothing is made before there is something to write.
pub struct ServerLogs {
    folder: PathBuf,
    lines: OnceLock<mpsc::Sender<Task>>,
    lost: Arc<AtomicU64>,
}

/// One line of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// When, as RFC 3339 has it.
    pub time: &'a str,
    /// Who says it.
    pub voice: Voice,
    /// What: escaped, and without the server's secrets.
    pub text: &'a str,
}

/// Who says a line of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// The server, on stderr.
    Server,
    /// Wharf, of the server's process.
    Wharf,
}

enum Task {
    Write { server: String, line: String },
    Flush(oneshot::Sender<()>),
}

impl ServerLogs {
    /// The log files beneath a state directory.
    pub fn beneath(state: &Path) -> Self {
        Self { folder: state.join("logs"), lines: OnceLock::new(), lost: Arc::default() }
    }

    /// The directory they are in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Waits until everything noted so far is written, or lost. Dropped while it waits, the rest is written all the same.
    pub async fn flush(&self) {
        let Some(lines) = self.lines.get() else { return };
        let (done, flushed) = oneshot::channel();
        if lines.send(Task::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }

    fn push(&self, task: Task) {
        let lines = self.lines.get_or_init(|| start(self.folder.clone(), Arc::clone(&self.lost)));
        if lines.try_send(task).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl ProcessLog for ServerLogs {
    fn note(&self, server: &str, at: SystemTime, note: ProcessNote<'_>) {
        let (voice, text) = match note {
            ProcessNote::Wrote(line) => (Voice::Server, line[..line.floor_char_boundary(LONGEST_LINE)].to_owned()),
            of_process => (Voice::Wharf, of_process.to_string()),
        };
        let text = Shown::line(&text, usize::MAX).to_string();
        let line = LogLine { time: &Timestamp(at).to_string(), voice, text: &text }.to_string();
        self.push(Task::Write { server: server.to_owned(), line });
    }
}

/// The name of a server's log file. What is no letter, digit, `-` or `_` does not get into it.
pub fn log_file_name(server: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let plain: String = server.chars().take(64).map(|letter| if fits(letter) { letter } else { '_' }).collect();
    format!("{plain}.log")
}

impl fmt::Display for LogLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.voice {
            Voice::Server => '|',
            Voice::Wharf => '-',
        };
        write!(f, "{} {mark} {}", self.time, self.text)
    }
}

impl<'a> LogLine<'a> {
    /// Reads a line as it is written; nothing where it is none.
    pub fn read(line: &'a str) -> Option<Self> {
        let (time, rest) = line.split_once(' ')?;
        let (mark, text) = rest.split_once(' ')?;
        let voice = match mark {
            "|" => Voice::Server,
            "-" => Voice::Wharf,
            _ => return None,
        };
        let is_time =
            time.len() == 24 && time.ends_with('Z') && time.starts_with(|letter: char| letter.is_ascii_digit());
        is_time.then_some(Self { time, voice, text })
    }
}

/// Starts the thread that writes. It ends when nobody has anything to write any more.
fn start(folder: PathBuf, lost: Arc<AtomicU64>) -> mpsc::Sender<Task> {
    let (sender, tasks) = mpsc::channel(WAITING);
    let thread = std::thread::Builder::new().name("wharf-logs".to_owned());
    // A thread of its own: a runtime waits for its blocking threads to end.
    let started = thread.spawn(move || Writer { folder, lost, files: HashMap::new() }.run(tasks));
    if let Err(error) = started {
        tracing::warn!("the logs of servers cannot be written: {error}");
    }
    sender
}

struct Writer {
    folder: PathBuf,
    lost: Arc<AtomicU64>,
    /// Nothing for a server whose file cannot be had.
    files: HashMap<String, Option<LogFile>>,
}

impl Writer {
    fn run(mut self, mut tasks: mpsc::Receiver<Task>) {
        while let Some(task) = tasks.blocking_recv() {
            match task {
                Task::Write { server, line } => self.write(&server, &line),
                Task::Flush(done) => drop(done.send(())),
            }
        }
    }

    fn write(&mut self, server: &str, line: &str) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if self.files.len() > MOST_OPEN {
            self.files.clear();
        }
        if !self.files.contains_key(server) {
            let opened = open(&self.folder, server);
            self.files.insert(server.to_owned(), opened);
        }
        let Some(Some(file)) = self.files.get_mut(server) else { return };
        if lost > 0 {
            let (time, text) = (Timestamp(SystemTime::now()).to_string(), format!("{lost} lines were lost"));
            let _ = file.append(&LogLine { time: &time, voice: Voice::Wharf, text: &text }.to_string());
        }
        if file.append(line).is_err() {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }
}

fn open(folder: &Path, server: &str) -> Option<LogFile> {
    let opened = LogFile::open(&folder.join(log_file_name(server)), MOST_BYTES);
    opened.inspect_err(|error| tracing::warn!(server, "its log cannot be written: {error}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};
    use wharf_client::Exit;

    #[tokio::test]
    async fn what_happens_to_a_server_is_written_line_by_line() {
        let state = tempfile::tempdir().unwrap();
        let logs = ServerLogs::beneath(state.path());
        logs.flush().await;
        assert!(!logs.folder().exists(), "nothing to write, nothing made");
        let at = UNIX_EPOCH + Duration::from_millis(1_785_196_799_999);
        for note in [
            ProcessNote::Started(7),
            ProcessNote::Wrote("  boom: \u{1b}[31mred\rline"),
            ProcessNote::Ended(Exit::Code(3)),
        ] {
            logs.note("../Ünsafe", at, note);
        }
        logs.flush().await;
        let text = std::fs::read_to_string(logs.folder().join("____nsafe.log")).unwrap();
        let time = "2026-07-27T23:59:59.999Z";
        let expected =
            format!("{time} - started pid 7\n{time} |   boom: \\u{{1b}}[31mred\\rline\n{time} - exited with code 3\n");
        assert_eq!(text, expected);
        let read: Vec<_> = text.lines().map(|line| LogLine::read(line).unwrap()).collect();
        assert_eq!(read[1], LogLine { time, voice: Voice::Server, text: "  boom: \\u{1b}[31mred\\rline" });
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_lost_and_nothing_else() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join("logs"), "no directory").unwrap();
        let logs = ServerLogs::beneath(state.path());
        for _ in 0..10 * WAITING {
            logs.note("a", UNIX_EPOCH, ProcessNote::Wrote(&"x".repeat(100)));
        }
        logs.flush().await;
        assert_eq!(std::fs::read_to_string(state.path().join("logs")).unwrap(), "no directory");
    }

    #[test]
    fn what_is_no_line_is_none() {
        for text in ["", "x", "2026-07-27T23:59:59.999Z", "2026-07-27T23:59:59.999Z ? x", "not-a-time | x"] {
            assert_eq!(LogLine::read(text), None, "{text}");
        }
    }
}
