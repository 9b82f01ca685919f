//! Taps: `--trace` writes every message to a file, `--debug` to stderr.

use std::fmt::Display;
use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;
use serde::Serialize;
use serde_json::value::RawValue;
use wharf_client::{Direction, Tap, TappedMessage};
use wharf_spec::UntrustedText;

use crate::clock::timestamp;
use crate::console::Console;
use crate::failure::Failure;
use crate::style::{QUIET, paint};

/// The trace file.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    file: Mutex<File>,
    has_failed: AtomicBool,
}

impl TraceFile {
    /// Creates or truncates the file, readable only by its owner, since messages may hold secrets.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened, or if it is a FIFO.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let failed = |error: &dyn Display| {
            Failure::usage(format_args!("cannot write the trace file `{}`: {error}", path.display()))
        };
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        // Opening a FIFO without a reader would block forever.
        options.custom_flags(nonblocking_flag());
        let file = options.open(path).map_err(|error| failed(&error))?;
        let metadata = file.metadata().map_err(|error| failed(&error))?;
        if metadata.is_file() {
            file.set_permissions(Permissions::from_mode(0o600)).map_err(|error| failed(&error))?;
        } else if metadata.file_type().is_fifo() {
            return Err(failed(&"it is a FIFO"));
        }
        Ok(Self { path: path.to_owned(), file: Mutex::new(file), has_failed: AtomicBool::new(false) })
    }

    /// Writes a line. Warns about the first error, which affects only the trace.
    fn write(&self, line: &TraceLine<'_>, console: &Console) {
        let Ok(mut text) = serde_json::to_vec(line) else { return };
        text.push(b'\n');
        // One write per line, so that a crash leaves no partial line.
        let written = self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&text);
        if let Err(error) = written
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            console.warn(format_args!(
                "the trace file `{}` is incomplete: {error}",
                UntrustedText::new(self.path.to_string_lossy())
            ));
        }
    }
}

/// Returns the open flag for non-blocking mode.
fn nonblocking_flag() -> i32 {
    i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default()
}

/// The tap of a command, for all servers. Masks the secrets of each server.
pub struct CommandTap {
    pub file: Option<Arc<TraceFile>>,
    pub console: Arc<Console>,
    pub shown: ShownServers,
}

/// Servers of which the messages are shown.
pub enum ShownServers {
    All,
    Only(Vec<String>),
}

impl ShownServers {
    /// Reports whether any server is shown.
    pub fn is_any(&self) -> bool {
        !matches!(self, Self::Only(servers) if servers.is_empty())
    }

    fn has(&self, server: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(servers) => servers.iter().any(|name| name == server),
        }
    }
}

/// One line of the trace.
#[derive(Serialize)]
struct TraceLine<'a> {
    time: String,
    server: &'a str,
    direction: &'static str,
    message: TraceMessage<'a>,
}

/// A message with its secrets masked, or a text if it is not JSON.
#[derive(Serialize)]
#[serde(untagged)]
enum TraceMessage<'a> {
    Json(&'a RawValue),
    Text(String),
}

impl Tap for CommandTap {
    fn message(&self, passing: &TappedMessage<'_>) {
        let TappedMessage { server, direction, at, .. } = *passing;
        let (word, arrow) = match direction {
            Direction::Sent => ("sent", "→"),
            Direction::Received => ("received", "←"),
        };
        let masked = passing.redact();
        if let Some(file) = &self.file {
            let message = serde_json::from_slice(&masked)
                .map_or_else(|_| TraceMessage::Text(String::from_utf8_lossy(&masked).into_owned()), TraceMessage::Json);
            file.write(&TraceLine { time: timestamp(at), server, direction: word, message }, &self.console);
        }
        if self.shown.has(server) {
            let head = format!("{server} {arrow}");
            self.console.log_line(format_args!("{} {}", paint(QUIET, head), UntrustedText::from_bytes(&masked)));
        }
    }
}
