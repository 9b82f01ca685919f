//! Log files of servers: their stderr, their log messages, and the starts and exits of their processes.
//!
//! The files are `logs/<server>.log` in the state directory and its predecessor `.log.1`. A dedicated thread writes
//! them, so that neither a slow nor a full disk blocks a server or a call. Lines that cannot be written are lost; they
//! are counted per server and the server's file reports the number. A server that floods its log does not displace
//! other servers' lines.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{mpsc, oneshot};
use wharf_client::{ProcessLog, ProcessNote};
use wharf_spec::{EscapedText, Timestamp};
use wharf_store::LogFile;
use wharf_wire::LogMessage;

/// Maximum number of queued lines per server. Further lines are lost.
const MAX_QUEUED_LINES: usize = 256;
/// Wait before reopening a file that could not be opened.
const REOPEN_DELAY: Duration = Duration::from_secs(30);
/// Maximum bytes of a line.
const MAX_LINE_BYTES: usize = 8 << 10;
/// Size at which a file is rotated.
const MAX_LOG_FILE_BYTES: u64 = 1 << 20;
/// Number of cached files above which all of them are closed.
const MAX_OPEN_FILES: usize = 256;

/// Writer of the servers' log files. Nothing is created before the first line.
pub struct ServerLogs {
    folder: PathBuf,
    /// Queue to the writer. Unbounded, but limited per server by [`MAX_QUEUED_LINES`].
    lines: OnceLock<mpsc::UnboundedSender<LogTask>>,
    tallies: Arc<LineCounters>,
}

/// One line of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// Time in RFC 3339 format.
    pub time: &'a str,
    /// Source of the line.
    pub voice: LogSource,
    /// Text: escaped, and without the server's secrets.
    pub text: &'a str,
}

/// Source of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    /// The server's stderr.
    Server,
    /// Wharf, about the server's process.
    Wharf,
    /// A log message of the protocol.
    Message,
}

/// Queued and lost lines by server. Servers that have neither are absent.
#[derive(Default)]
struct LineCounters(Mutex<HashMap<String, LineCounter>>);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct LineCounter {
    waiting: usize,
    /// Lost lines not yet reported in the file.
    lost: u64,
}

enum LogTask {
    Write { server: String, line: String },
    Flush(oneshot::Sender<()>),
}

impl ServerLogs {
    /// Creates the log files of a state directory.
    pub fn in_state_dir(state: &Path) -> Self {
        Self { folder: state.join("logs"), lines: OnceLock::new(), tallies: Arc::default() }
    }

    /// Returns the directory of the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Waits until all lines so far are written or lost.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not affect the writing.
    pub async fn flush(&self) {
        let Some(lines) = self.lines.get() else { return };
        let (done, flushed) = oneshot::channel();
        if lines.send(LogTask::Flush(done)).is_ok() {
            let _ = flushed.await;
        }
    }

    /// Appends a log message of the protocol to the server's file. The client has removed the server's secrets.
    pub(crate) fn record_message(&self, server: &str, message: &LogMessage) {
        let logger = message.logger.as_deref().map(|logger| format!(" {logger}")).unwrap_or_default();
        let text: Option<String> = serde_json::from_slice(message.data.as_bytes()).ok();
        let text = text.as_deref().unwrap_or(message.data.as_str());
        let text = format!("{}{logger}: {}", message.level, &text[..text.floor_char_boundary(MAX_LINE_BYTES)]);
        let text = EscapedText::single_line(&text, usize::MAX).to_string();
        let time = Timestamp(SystemTime::now()).to_string();
        self.push(server, LogLine { time: &time, voice: LogSource::Message, text: &text }.to_string());
    }

    fn push(&self, server: &str, line: String) {
        let lines =
            self.lines.get_or_init(|| start_writer(LogWriter::new(self.folder.clone(), Arc::clone(&self.tallies))));
        if self.tallies.try_enqueue(server) {
            // Fails only if the writer thread could not be started.
            let _ = lines.send(LogTask::Write { server: server.to_owned(), line });
        }
    }
}

impl ProcessLog for ServerLogs {
    fn record(&self, server: &str, at: SystemTime, note: ProcessNote<'_>) {
        let (voice, text) = match note {
            ProcessNote::Wrote(line) => {
                (LogSource::Server, line[..line.floor_char_boundary(MAX_LINE_BYTES)].to_owned())
            }
            of_process => (LogSource::Wharf, of_process.to_string()),
        };
        let text = EscapedText::single_line(&text, usize::MAX).to_string();
        let line = LogLine { time: &Timestamp(at).to_string(), voice, text: &text }.to_string();
        self.push(server, line);
    }
}

impl LineCounters {
    /// Reports whether another line of a server may be queued. Counts it as queued or as lost.
    fn try_enqueue(&self, server: &str) -> bool {
        let mut tallies = self.lock();
        let tally = tallies.entry(server.to_owned()).or_default();
        let admitted = tally.waiting < MAX_QUEUED_LINES;
        if admitted {
            tally.waiting += 1;
        } else {
            tally.lost += 1;
        }
        admitted
    }

    /// Records that a queued line was taken. Returns the number of lost lines.
    fn dequeue(&self, server: &str) -> u64 {
        self.update(server, |tally| {
            tally.waiting = tally.waiting.saturating_sub(1);
            tally.lost
        })
    }

    fn count_lost(&self, server: &str) {
        self.update(server, |tally| tally.lost += 1);
    }

    /// Records that lost lines have been reported.
    fn mark_reported(&self, server: &str, lost: u64) {
        self.update(server, |tally| tally.lost = tally.lost.saturating_sub(lost));
    }

    fn update<T>(&self, server: &str, change: impl FnOnce(&mut LineCounter) -> T) -> T {
        let mut tallies = self.lock();
        let tally = tallies.entry(server.to_owned()).or_default();
        let changed = change(tally);
        if *tally == LineCounter::default() {
            tallies.remove(server);
        }
        changed
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, LineCounter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the name of a server's log file. Characters other than ASCII letters, digits, `-` and `_` are replaced.
pub fn log_file_name(server: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let plain: String = server.chars().take(64).map(|letter| if fits(letter) { letter } else { '_' }).collect();
    format!("{plain}.log")
}

impl fmt::Display for LogLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.voice {
            LogSource::Server => '|',
            LogSource::Wharf => '-',
            LogSource::Message => ':',
        };
        write!(f, "{} {mark} {}", self.time, self.text)
    }
}

impl<'a> LogLine<'a> {
    /// Parses a line of a log file. Returns `None` if it is malformed.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (time, rest) = line.split_once(' ')?;
        let (mark, text) = rest.split_once(' ')?;
        let voice = match mark {
            "|" => LogSource::Server,
            "-" => LogSource::Wharf,
            ":" => LogSource::Message,
            _ => return None,
        };
        let is_time =
            time.len() == 24 && time.ends_with('Z') && time.starts_with(|letter: char| letter.is_ascii_digit());
        is_time.then_some(Self { time, voice, text })
    }
}

/// Starts the writer thread. It ends when the senders are dropped.
fn start_writer(writer: LogWriter) -> mpsc::UnboundedSender<LogTask> {
    let (sender, tasks) = mpsc::unbounded_channel();
    // A dedicated thread, because a runtime waits for its blocking threads on shutdown.
    let started = wharf_threads::start_thread("wharf-logs", move || writer.run(tasks));
    if let Err(error) = started {
        tracing::warn!("cannot start the thread that writes server logs: {error}");
    }
    sender
}

struct LogWriter {
    folder: PathBuf,
    tallies: Arc<LineCounters>,
    files: HashMap<String, LogFileSlot>,
}

/// The file of a server.
enum LogFileSlot {
    Open(LogFile),
    /// The file could not be opened. Holds the time of the last attempt.
    Failed(Instant),
}

impl LogWriter {
    fn new(folder: PathBuf, tallies: Arc<LineCounters>) -> Self {
        Self { folder, tallies, files: HashMap::new() }
    }

    fn run(mut self, mut tasks: mpsc::UnboundedReceiver<LogTask>) {
        while let Some(task) = tasks.blocking_recv() {
            match task {
                LogTask::Write { server, line } => self.write(&server, &line, Instant::now()),
                LogTask::Flush(done) => drop(done.send(())),
            }
        }
    }

    fn write(&mut self, server: &str, line: &str, now: Instant) {
        let lost = self.tallies.dequeue(server);
        self.open(server, now);
        let Some(LogFileSlot::Open(file)) = self.files.get_mut(server) else { return self.tallies.count_lost(server) };
        if lost > 0 && file.append(&loss_line(lost)).is_ok() {
            self.tallies.mark_reported(server, lost);
        }
        if file.append(line).is_err() {
            self.tallies.count_lost(server);
        }
    }

    /// Opens the file of a server, unless it is open or failed to open recently.
    fn open(&mut self, server: &str, now: Instant) {
        let failed_before = match self.files.get(server) {
            Some(LogFileSlot::Open(_)) => return,
            Some(LogFileSlot::Failed(at)) if now.duration_since(*at) < REOPEN_DELAY => return,
            before => before.is_some(),
        };
        if self.files.len() > MAX_OPEN_FILES {
            self.files.clear();
        }
        let slot = match LogFile::open(&self.folder.join(log_file_name(server)), MAX_LOG_FILE_BYTES) {
            Ok(file) => LogFileSlot::Open(file),
            Err(error) => {
                // Reported once: the failure may last as long as the host.
                if !failed_before {
                    tracing::warn!(server, "opening its log file failed: {error}");
                }
                LogFileSlot::Failed(now)
            }
        };
        self.files.insert(server.to_owned(), slot);
    }
}

fn loss_line(lost: u64) -> String {
    let text = if lost == 1 { "1 log line was lost".to_owned() } else { format!("{lost} log lines were lost") };
    LogLine { time: &Timestamp(SystemTime::now()).to_string(), voice: LogSource::Wharf, text: &text }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;
    use wharf_client::ProcessExit;

    #[tokio::test]
    async fn process_notes_are_logged_line_by_line() {
        let state = tempfile::tempdir().unwrap();
        let logs = ServerLogs::in_state_dir(state.path());
        logs.flush().await;
        assert!(!logs.folder().exists(), "nothing to write, nothing made");
        let at = UNIX_EPOCH + Duration::from_millis(1_785_196_799_999);
        for note in [
            ProcessNote::Started(7),
            ProcessNote::Wrote("  boom: \u{1b}[31mred\rline"),
            ProcessNote::Ended(ProcessExit::Code(3)),
        ] {
            logs.record("../Ünsafe", at, note);
        }
        logs.flush().await;
        let text = std::fs::read_to_string(logs.folder().join("____nsafe.log")).unwrap();
        let time = "2026-07-27T23:59:59.999Z";
        let expected =
            format!("{time} - started pid 7\n{time} |   boom: \\u{{1b}}[31mred\\rline\n{time} - exited with code 3\n");
        assert_eq!(text, expected);
        let read: Vec<_> = text.lines().map(|line| LogLine::parse(line).unwrap()).collect();
        assert_eq!(read[1], LogLine { time, voice: LogSource::Server, text: "  boom: \\u{1b}[31mred\\rline" });
    }

    #[tokio::test]
    async fn unwritable_log_directory_loses_only_log_lines() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join("logs"), "no directory").unwrap();
        let logs = ServerLogs::in_state_dir(state.path());
        for _ in 0..10 * MAX_QUEUED_LINES {
            logs.record("a", UNIX_EPOCH, ProcessNote::Wrote(&"x".repeat(100)));
        }
        logs.flush().await;
        assert_eq!(std::fs::read_to_string(state.path().join("logs")).unwrap(), "no directory");
    }

    /// Returns the texts of a log file without the times.
    fn read_texts(logs: &Path, server: &str) -> Vec<String> {
        let text = std::fs::read_to_string(logs.join(log_file_name(server))).unwrap();
        text.lines().map(|line| LogLine::parse(line).unwrap().text.to_owned()).collect()
    }

    #[test]
    fn flooding_server_loses_only_its_own_lines() {
        let state = tempfile::tempdir().unwrap();
        let logs = ServerLogs::in_state_dir(state.path());
        let (sender, tasks) = mpsc::unbounded_channel();
        // No writer runs yet, as with a slow disk.
        logs.lines.set(sender).unwrap();
        let note = |server: &str, text: &str| logs.record(server, UNIX_EPOCH, ProcessNote::Wrote(text));
        note("calm", "before");
        (0..5 * MAX_QUEUED_LINES).for_each(|number| note("flood", &number.to_string()));
        note("calm", "after");
        let (folder, tallies) = (logs.folder().to_owned(), Arc::clone(&logs.tallies));
        drop(logs);
        LogWriter::new(folder.clone(), Arc::clone(&tallies)).run(tasks);
        assert_eq!(read_texts(&folder, "calm"), ["before", "after"]);
        let flood = read_texts(&folder, "flood");
        assert_eq!(
            (flood.len(), flood[0].clone()),
            (MAX_QUEUED_LINES + 1, format!("{} log lines were lost", 4 * MAX_QUEUED_LINES))
        );
        assert!(tallies.lock().is_empty(), "everything is told");
    }

    #[test]
    fn unopenable_log_is_retried_and_lost_lines_are_counted() {
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().join("logs");
        std::fs::write(&folder, "no directory").unwrap();
        let mut writer = LogWriter::new(folder.clone(), Arc::default());
        let began = Instant::now();
        let mut write = |after: Duration, text: &str| {
            assert!(writer.tallies.try_enqueue("a"));
            let line = LogLine { time: "2026-07-27T23:59:59.999Z", voice: LogSource::Server, text }.to_string();
            writer.write("a", &line, began + after);
            writer.tallies.lock().get("a").map_or(0, |tally| tally.lost)
        };
        assert_eq!(write(Duration::ZERO, "one"), 1);
        std::fs::remove_file(&folder).unwrap();
        assert_eq!(write(REOPEN_DELAY / 2, "two"), 2);
        assert!(!folder.exists());
        assert_eq!(write(REOPEN_DELAY, "three"), 0);
        assert_eq!(read_texts(&folder, "a"), ["2 log lines were lost", "three"]);
    }

    #[test]
    fn malformed_log_lines_are_rejected() {
        for text in ["", "x", "2026-07-27T23:59:59.999Z", "2026-07-27T23:59:59.999Z ? x", "not-a-time | x"] {
            assert_eq!(LogLine::parse(text), None, "{text}");
        }
    }
}
