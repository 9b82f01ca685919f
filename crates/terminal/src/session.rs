//! One command from beginning to end: its console, its signals, the servers it has open.
//!
//! Whatever a command opened is closed here, in one place, however the command ended.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anstream::ColorChoice;
use clap::Args;
use tokio::task::JoinSet;
use wharf::{Events, Host, ServerLogs};
use wharf_auth::Account;
use wharf_client::{Authorizer, ConnectOptions, Connection, Limits, ProcessLog, Tap};
use wharf_spec::{ServerEntry, ServerSpec, Surroundings, Untrusted};

use crate::accounts::Accounts;
use crate::configured::{ConfigArgs, Configuration, ignored_variables};
use crate::console::{Console, Manner};
use crate::failure::{Failure, Kind, LOG_IN, Outcome, login_words, render};
use crate::log::Talk;
use crate::signals::FirstSignal;
use crate::style::{QUIET, paint};
use crate::table::wrap;
use crate::tap::{CommandTap, Shown, TraceFile};

/// What every command that talks to servers takes.
#[derive(Debug, Default, Args)]
pub struct Common {
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Show every message and step on stderr, as WHARF_DEBUG=1 does
    #[arg(long, help_heading = "Output")]
    pub debug: bool,
    /// Write every message to FILE as JSON lines
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// How long a server may take to start, and to answer or report progress: seconds, or "250ms"
    #[arg(long, value_name = "TIME", value_parser = timeout, help_heading = "Server")]
    pub timeout: Option<Duration>,
    /// Which of your accounts at a server with logins: see `wharf auth`
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    pub account: Option<String>,
}

/// Reads `30`, `2.5`, `30s` or `250ms`.
pub fn timeout(text: &str) -> Result<Duration, String> {
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
    pub configuration: Arc<Configuration>,
    pub accounts: Arc<Accounts>,
    limits: Limits,
    trace: Option<Arc<TraceFile>>,
    logs: Option<Arc<ServerLogs>>,
    /// What `--timeout` says.
    timeout: Option<Duration>,
    /// How to log in at each server that was dialled, after `wharf auth`.
    logins: Mutex<HashMap<String, String>>,
    open: Mutex<Vec<Connection>>,
    /// With whoever hears what happens in them: nobody has to be told twice.
    hosts: Mutex<Vec<(Host, Events)>>,
    /// What is still being said to servers before they are closed.
    last_words: Mutex<JoinSet<()>>,
}

/// How long a server that is being left may take to hear why.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long the logs of servers may take to be written at the end.
const LAST_LINES: Duration = Duration::from_millis(500);

/// What is read at the edge of the program and passed down.
pub struct Edge {
    pub surroundings: Surroundings,
    pub color: ColorChoice,
    pub config: ConfigArgs,
}

/// Runs a command and tells how it ended.
pub fn run(edge: Edge, common: &Common, body: impl AsyncFnOnce(&Session) -> Outcome) -> ExitCode {
    let debug =
        common.debug || edge.surroundings.var("WHARF_DEBUG").is_some_and(|value| is_yes(&value.to_string_lossy()));
    let manner = Manner { json: common.json, debug, color: edge.color };
    let console = Arc::new(Console::new(manner));
    // Set once per process; there is nobody else to have set it.
    let _ = tracing::subscriber::set_global_default(Talk(console.clone()));
    match perform(edge, console.clone(), common, body) {
        Ok(ending) => ending.exit_code(),
        Err(failure) => tell(&console, &failure),
    }
}

/// Whether a variable that is set means yes: anything but nothing, `0`, `false`, `no` and `off`.
fn is_yes(value: &str) -> bool {
    !["", "0", "false", "no", "off"].contains(&value.trim().to_ascii_lowercase().as_str())
}

fn perform(edge: Edge, console: Arc<Console>, common: &Common, body: impl AsyncFnOnce(&Session) -> Outcome) -> Outcome {
    let session = Session::new(edge, console, common)?;
    let system = |error: io::Error| Failure::other(format_args!("the system refused: {error}"));
    // Two threads, so that a reader who stops reading our output does not keep us from hearing a signal.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(system)?;
    runtime.block_on(async {
        let signal = FirstSignal::listen().map_err(system)?;
        let outcome = tokio::select! {
            biased;
            () = signal.wait() => Err(Failure::interrupted()),
            outcome = body(&session) => outcome.map_err(|failure| session.in_full(failure)),
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
    fn new(edge: Edge, console: Arc<Console>, common: &Common) -> Result<Self, Failure> {
        let mut limits = Limits::default().one_shot();
        if let Some(timeout) = common.timeout {
            limits.startup = timeout;
            limits.call = timeout;
            limits.call_max = limits.call_max.max(timeout);
        }
        let trace = common.trace.as_deref().map(TraceFile::create).transpose()?.map(Arc::new);
        let Edge { surroundings, config, .. } = edge;
        for (name, path) in ignored_variables(&surroundings) {
            let path = Untrusted::new(path.to_string_lossy());
            console.warn(format_args!("{name} is `{path}` and ignored: set it to an absolute path, or unset it"));
        }
        let mut configuration = Configuration::new(config, &surroundings, Arc::clone(&console));
        configuration.account.clone_from(&common.account);
        let configuration = Arc::new(configuration);
        Ok(Self {
            accounts: Arc::new(Accounts::new(configuration.clone(), common.account.clone())),
            logs: configuration.state.as_deref().map(|state| Arc::new(ServerLogs::beneath(state))),
            configuration,
            console,
            surroundings,
            limits,
            trace,
            timeout: common.timeout,
            logins: Mutex::default(),
            open: Mutex::default(),
            hosts: Mutex::default(),
            last_words: Mutex::default(),
        })
    }

    /// How long a call may take at most.
    pub fn call_max(&self) -> Duration {
        self.limits.call_max
    }

    /// Bounds and delays of this command.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The same for a host that stays: servers have longer to stop.
    pub fn staying_limits(&self) -> Limits {
        let Limits { stop_grace, term_grace, .. } = Limits::default();
        let mut limits = self.limits.clone();
        (limits.stop_grace, limits.term_grace) = (stop_grace, term_grace);
        limits
    }

    /// How long a server may take, where somebody has said so with `--timeout`.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// How this command connects to a server, and who it is there.
    pub fn options_for(&self, entry: &ServerEntry) -> ConnectOptions {
        let mut options = self.connect_options(entry.name.as_str());
        options.authorizer = self.account(entry).map(|account| Arc::new(account) as Arc<dyn Authorizer>);
        options
    }

    /// The account at a server that is dialled.
    pub fn account(&self, entry: &ServerEntry) -> Option<Account> {
        match &entry.spec {
            ServerSpec::Http(spec) => {
                let words = login_words(entry.name.as_str(), spec);
                self.logins.lock().unwrap_or_else(PoisonError::into_inner).insert(entry.name.to_string(), words);
                self.accounts.of(entry.name.as_str(), spec)
            }
            ServerSpec::Stdio(_) => None,
        }
    }

    /// A failure whose next step is a login, with the words that lead to the very login that was used.
    pub fn in_full(&self, mut failure: Failure) -> Failure {
        let Some(server) = &failure.error.server else { return failure };
        if let Some(words) = self.logins.lock().unwrap_or_else(PoisonError::into_inner).get(server) {
            let (short, full) = (format!("{LOG_IN} {server} "), format!("{LOG_IN} {words} "));
            let is_short = |hint: &&mut String| hint.starts_with(&short) && !hint.starts_with(&full);
            for hint in failure.hints.iter_mut().filter(is_short) {
                *hint = format!("{full}{}", &hint[short.len()..]);
            }
        }
        failure
    }

    /// How this command connects to a server of that name, as nobody in particular.
    pub fn connect_options(&self, server: &str) -> ConnectOptions {
        let mut options = ConnectOptions::default();
        options.name = server.to_owned();
        options.surroundings = self.surroundings.clone();
        options.limits = self.limits.clone();
        if let Some(console) = self.shows(server).then(|| self.console.clone()) {
            let server = server.to_owned();
            options.on_step = Some(Arc::new(move |step| {
                let head = format!("{server} · {} ({:?}, {:.1?})", step.name, step.outcome, step.duration);
                console.say(format_args!("{} {}", paint(QUIET, head), step.detail));
            }));
        }
        options.tap = self.tap();
        options.process_log = self.process_log();
        options
    }

    /// Sees every message of every server, where `--debug` or `--trace` want that.
    pub fn tap(&self) -> Option<Arc<dyn Tap>> {
        let shown = match self.configuration.debugging() {
            _ if self.console.manner.debug => Shown::All,
            servers => Shown::Only(servers),
        };
        let is_wanted = shown.is_any() || self.trace.is_some();
        let tap = || CommandTap { file: self.trace.clone(), console: self.console.clone(), shown };
        is_wanted.then(|| Arc::new(tap()) as Arc<dyn Tap>)
    }

    /// Whether the messages of a server are shown.
    fn shows(&self, server: &str) -> bool {
        self.console.manner.debug || self.configuration.debugging().iter().any(|name| name == server)
    }

    /// Takes what servers write to stderr; nothing where there is no place to keep it.
    pub fn process_log(&self) -> Option<Arc<dyn ProcessLog>> {
        self.logs.clone().map(|logs| logs as Arc<dyn ProcessLog>)
    }

    /// Remembers a connection, to be closed at the end.
    pub fn keep(&self, connection: &Connection) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(connection.clone());
    }

    /// Remembers a host, to be closed at the end.
    pub fn keep_host(&self, host: &Host, events: Events) {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).push((host.clone(), events));
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
        let hosts = std::mem::take(&mut *self.hosts.lock().unwrap_or_else(PoisonError::into_inner));
        let mut closing: JoinSet<()> =
            open.into_iter().map(|connection| async move { connection.close().await }).collect();
        hosts.into_iter().for_each(|(host, _events)| drop(closing.spawn(async move { host.close().await })));
        while closing.join_next().await.is_some() {}
        self.accounts.finish().await;
        if let Some(logs) = &self.logs {
            // Not worth waiting for, but for the last line of a server that has just ended.
            let _ = tokio::time::timeout(LAST_LINES, logs.flush()).await;
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Session {
    /// A session of somebody whose home is this directory, in the project below it: for the tests of what works with one.
    pub fn in_directory(home: &std::path::Path) -> Self {
        let surroundings = Surroundings { env: vec![("HOME".into(), home.into())], cwd: home.join("project") };
        let manner = Manner { json: false, debug: false, color: ColorChoice::Never };
        let edge = Edge { surroundings, color: manner.color, config: Default::default() };
        Self::new(edge, Arc::new(Console::new(manner)), &Common::default())
            .expect("nothing was asked for that can fail")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_switches_are_read() {
        for (text, millis) in [("30", 30_000), ("2.5", 2500), ("7s", 7000), ("250ms", 250)] {
            assert_eq!(timeout(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for (value, yes) in [("1", true), ("yes", true), ("", false), ("0", false), ("False", false), ("off", false)] {
            assert_eq!(is_yes(value), yes, "{value}");
        }
        for text in ["", "0", "-1", "soon", "1e99", "ms", "NaN"] {
            assert!(timeout(text).is_err(), "{text}");
        }
    }
}
