//! One command from beginning to end: its console, its signals, the servers it has open.
//!
//! Whatever a command opened is closed here, in one place, however the command ended.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use tokio::task::JoinSet;
use wharf_client::{ConnectOptions, Connection, Limits};
use wharf_spec::Surroundings;

use crate::command::Edge;
use crate::console::{Console, Manner};
use crate::failure::{Failure, Kind, Outcome, render};
use crate::log::Talk;
use crate::signals::FirstSignal;
use crate::style::{QUIET, paint};
use crate::table::wrap;
use crate::tap::{ServerTap, TraceFile};

/// What every command that talks to servers takes.
#[derive(Debug, Default, Args)]
pub struct Common {
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Show every message and step on stderr
    #[arg(long, help_heading = "Output")]
    pub debug: bool,
    /// Write every message to FILE as JSON lines
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// How long a server may take to start, and to answer or report progress: seconds, or "250ms"
    #[arg(long, value_name = "TIME", value_parser = timeout, help_heading = "Server")]
    pub timeout: Option<Duration>,
}

/// Reads `30`, `2.5`, `30s` or `250ms`.
fn timeout(text: &str) -> Result<Duration, String> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 1.0),
    };
    let time = number.trim().parse::<f64>().ok().and_then(|number| Duration::try_from_secs_f64(number * unit).ok());
    time.filter(|time| !time.is_zero()).ok_or_else(|| "a time is written like 30, 2.5 or 250ms".to_owned())
}

/// What a command works with.
pub struct Session {
    pub console: Arc<Console>,
    pub surroundings: Surroundings,
    limits: Limits,
    trace: Option<Arc<TraceFile>>,
    open: Mutex<Vec<Connection>>,
    /// What is still being said to servers before they are closed.
    last_words: Mutex<JoinSet<()>>,
}

/// How long a server that is being left may take to hear why.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs a command and tells how it ended.
pub fn run(edge: Edge, common: &Common, body: impl AsyncFnOnce(&Session) -> Outcome) -> ExitCode {
    let manner = Manner { json: common.json, debug: common.debug, color: edge.color };
    let console = Arc::new(Console::new(manner));
    // Set once per process; there is nobody else to have set it.
    let _ = tracing::subscriber::set_global_default(Talk(console.clone()));
    match perform(edge.surroundings, console.clone(), common, body) {
        Ok(ending) => ending.exit_code(),
        Err(failure) => tell(&console, &failure),
    }
}

fn perform(
    surroundings: Surroundings,
    console: Arc<Console>,
    common: &Common,
    body: impl AsyncFnOnce(&Session) -> Outcome,
) -> Outcome {
    let session = Session::new(surroundings, console, common)?;
    let system = |error: io::Error| Failure::other(format_args!("the system refused: {error}"));
    // Two threads, so that a reader who stops reading our output does not keep us from hearing a signal.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(system)?;
    runtime.block_on(async {
        let signal = FirstSignal::listen().map_err(system)?;
        let outcome = tokio::select! {
            biased;
            () = signal.wait() => Err(Failure::interrupted()),
            outcome = body(&session) => outcome,
        };
        session.console.clear();
        session.close().await;
        outcome
    })
}

fn tell(console: &Console, failure: &Failure) -> ExitCode {
    if failure.kind != Kind::OutputClosed {
        let told = console.manner.json && console.document(&failure.document()).is_ok();
        if !told {
            console.say(wrap(&render(failure), console.talk_width()));
        }
    }
    failure.kind.code().into()
}

impl Session {
    fn new(surroundings: Surroundings, console: Arc<Console>, common: &Common) -> Result<Self, Failure> {
        let mut limits = Limits::default().one_shot();
        if let Some(timeout) = common.timeout {
            limits.startup = timeout;
            limits.call = timeout;
            limits.call_max = limits.call_max.max(timeout);
        }
        let trace = common.trace.as_deref().map(TraceFile::create).transpose()?.map(Arc::new);
        Ok(Self { console, surroundings, limits, trace, open: Mutex::default(), last_words: Mutex::default() })
    }

    /// How long a call may take at most.
    pub fn call_max(&self) -> Duration {
        self.limits.call_max
    }

    /// How this command connects to a server of that name.
    pub fn connect_options(&self, server: &str) -> ConnectOptions {
        let mut options = ConnectOptions::default();
        options.name = server.to_owned();
        options.surroundings = self.surroundings.clone();
        options.limits = self.limits.clone();
        let debug = self.console.manner.debug.then(|| self.console.clone());
        if let Some(console) = debug.clone() {
            let server = server.to_owned();
            options.on_step = Some(Arc::new(move |step| {
                let head = format!("{server} · {} ({:?}, {:.1?})", step.name, step.outcome, step.duration);
                console.say(format_args!("{} {}", paint(QUIET, head), step.detail));
            }));
        }
        if debug.is_some() || self.trace.is_some() {
            options.tap = Some(Arc::new(ServerTap { server: server.to_owned(), file: self.trace.clone(), debug }));
        }
        options
    }

    /// Remembers a connection, to be closed at the end.
    pub fn keep(&self, connection: &Connection) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(connection.clone());
    }

    /// Says something to a server that is about to be left. It is waited for, but not long, before anything is closed.
    pub fn last_word(&self, word: impl Future<Output = ()> + Send + 'static) {
        self.last_words.lock().unwrap_or_else(PoisonError::into_inner).spawn(word);
    }

    /// Closes everything that is open, all at once.
    pub async fn close(&self) {
        let mut words = std::mem::take(&mut *self.last_words.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = tokio::time::timeout(LAST_WORDS, async { while words.join_next().await.is_some() {} }).await;
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        let mut closing: JoinSet<()> =
            open.into_iter().map(|connection| async move { connection.close().await }).collect();
        while closing.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_seconds_and_milliseconds() {
        for (text, millis) in [("30", 30_000), ("2.5", 2500), ("7s", 7000), ("250ms", 250)] {
            assert_eq!(timeout(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "0", "-1", "soon", "1e99", "ms", "NaN"] {
            assert!(timeout(text).is_err(), "{text}");
        }
    }
}
