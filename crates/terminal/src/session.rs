//! The lifetime of one command: its console, its signals and its open servers.
//!
//! Closes everything that a command opened, in one place, however the command ended.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anstream::ColorChoice;
use clap::Args;
use tokio::sync::watch;
use tokio::task::JoinSet;
use wharf::{EventReceiver, Host, ServerLogs};
use wharf_auth::Account;
use wharf_client::{Authorizer, ConnectOptions, Connection, Limits, ProcessLog, Tap};
use wharf_spec::{Environment, ServerEntry, ServerSpec, UntrustedText};

use crate::accounts::ServerAccounts;
use crate::config_context::{ConfigArgs, ConfigContext, ignored_variables};
use crate::console::{Console, OutputMode};
use crate::failure::{
    CommandEnding, CommandResult, Failure, FailureKind, LOGIN_COMMAND, login_arguments, render_failure,
};
use crate::log::ConsoleSubscriber;
use crate::output::OutputStream;
use crate::runtime_start::start_runtime;
use crate::signals::FirstSignal;
use crate::style::{QUIET, paint};
use crate::table::wrap;
use crate::tap::{CommandTap, ShownServers, TraceFile};

/// Options common to all commands that use servers.
#[derive(Debug, Clone, Default, Args)]
pub struct CommonArgs {
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print every message and step on stderr, as with WHARF_DEBUG=1
    #[arg(long, help_heading = "Output")]
    pub debug: bool,
    /// Write every message to FILE as JSON lines
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// Timeout for startup and for each response or progress update, e.g. 30, 250ms
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, help_heading = "Server")]
    pub timeout: Option<Duration>,
    /// Account to use for servers with logins; see `wharf auth`
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    pub account: Option<String>,
}

/// `--json` alone, for commands that use no servers.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct JsonArgs {
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl JsonArgs {
    pub fn common(self) -> CommonArgs {
        CommonArgs { json: self.json, ..CommonArgs::default() }
    }
}

/// Parses `30`, `2.5`, `30s` or `250ms`.
///
/// # Errors
///
/// Returns a sentence if the text has another form or is zero.
pub fn parse_timeout(text: &str) -> Result<Duration, String> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 1.0),
    };
    let time = number.trim().parse::<f64>().ok().and_then(|number| Duration::try_from_secs_f64(number * unit).ok());
    time.filter(|time| !time.is_zero()).ok_or_else(|| "write a time as 30, 2.5 or 250ms".to_owned())
}

/// Shared state of one command.
pub struct CommandSession {
    pub console: Arc<Console>,
    pub environment: Environment,
    pub configuration: Arc<ConfigContext>,
    pub accounts: Arc<ServerAccounts>,
    limits: Limits,
    trace: Option<Arc<TraceFile>>,
    logs: Option<Arc<ServerLogs>>,
    /// Value of `--timeout`.
    timeout: Option<Duration>,
    /// Options that select the configuration.
    config_args: ConfigArgs,
    signal: CommandSignal,
    /// Arguments of `wharf auth` for each HTTP server used.
    logins: Mutex<HashMap<String, String>>,
    open: Mutex<Vec<Connection>>,
    /// Open hosts. Holding their events keeps these out of the log.
    hosts: Mutex<Vec<(Host, EventReceiver)>>,
    /// Tasks to finish before the servers are closed.
    shutdown_tasks: Mutex<JoinSet<()>>,
}

/// The first signal, for commands that handle it.
#[derive(Default)]
struct CommandSignal {
    is_handled: AtomicBool,
    is_received: watch::Sender<bool>,
}

/// Time limit of the shutdown tasks.
const SHUTDOWN_TASKS_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit for each step of the remaining output after a signal or a timeout.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit for background work at the end.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for writing the servers' logs at the end.
const LOG_FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Process-wide inputs, read once at startup and passed down.
pub struct CliContext {
    pub environment: Environment,
    pub color: ColorChoice,
    pub config: ConfigArgs,
}

/// Runs a command and reports its failure.
pub fn run(
    context: CliContext,
    common: &CommonArgs,
    body: impl AsyncFnOnce(&CommandSession) -> CommandResult,
) -> ExitCode {
    let variable =
        context.environment.var("WHARF_DEBUG").map(|value| value.to_string_lossy().trim().to_ascii_lowercase());
    let info = variable.as_deref() == Some("info");
    let debug = common.debug || variable.is_some_and(|value| !info && is_truthy(&value));
    let mode = OutputMode { json: common.json, debug, info, color: context.color };
    let console = Arc::new(Console::new(mode));
    // Set once per process, so it cannot fail.
    let _ = tracing::subscriber::set_global_default(ConsoleSubscriber::new(console.clone()));
    run_session(context, console.clone(), common, body).unwrap_or_else(|failure| {
        let failure = failure.with_next_step(None);
        report_failure(&console, &failure);
        console.drain_blocking();
        failure.kind.code().into()
    })
}

/// Reports whether a variable is truthy: not empty, `0`, `false`, `no` or `off`.
fn is_truthy(value: &str) -> bool {
    !["", "0", "false", "no", "off"].contains(&value.trim().to_ascii_lowercase().as_str())
}

fn run_session(
    context: CliContext,
    console: Arc<Console>,
    common: &CommonArgs,
    body: impl AsyncFnOnce(&CommandSession) -> CommandResult,
) -> Result<ExitCode, Failure> {
    let session = CommandSession::new(context, console, common)?;
    let system = |error: io::Error| Failure::other(format_args!("system error: {error}"));
    let runtime = start_runtime().map_err(system)?;
    let code = runtime.block_on(async {
        let console = session.console.clone();
        let mut signal = FirstSignal::listen(move || console.abandon_output()).map_err(system)?;
        let outcome = tokio::select! {
            biased;
            () = session.wait_for_interrupt(&mut signal) => Err(Failure::interrupted()),
            outcome = body(&session) => outcome.map_err(|failure| session.with_next_step(failure)),
        };
        session.console.clear_status();
        session.close().await;
        Ok(finish_output(&session.console, outcome, &mut signal).await)
    });
    // For example a rule that is being written.
    wharf_threads::wait_for_background(BACKGROUND_TIMEOUT);
    code
}

/// Reports a failure and waits until all output is written: without a time limit, as any command waits for its reader,
/// but only briefly after a signal or a timeout.
async fn finish_output(console: &Console, outcome: CommandResult, signal: &mut FirstSignal) -> ExitCode {
    let mut code = match &outcome {
        Ok(ending) => ending.exit_code(),
        Err(failure) => failure.kind.code().into(),
    };
    let reported = outcome.as_ref().err().and_then(|failure| report_failure(console, failure));
    let is_ended_early =
        outcome_kind(&outcome).is_some_and(|kind| matches!(kind, FailureKind::TimedOut | FailureKind::Interrupted));
    let limit = (is_ended_early || signal.is_received()).then_some(OUTPUT_TIMEOUT);
    let drained = tokio::select! {
        drained = console.drain(limit) => drained,
        () = signal.wait(), if limit.is_none() => Err(Failure::interrupted()),
    };
    match (drained, outcome) {
        (Ok(()), _) => {}
        (Err(late), Ok(_)) => {
            code = late.kind.code().into();
            report_message(console, &late.with_next_step(None));
        }
        // The report may have been part of the data that could not be written.
        (Err(_), Err(failure)) if reported == Some(OutputStream::Stdout) => report_message(console, &failure),
        (Err(_), Err(_)) => {}
    }
    let _ = console.drain(Some(OUTPUT_TIMEOUT)).await;
    code
}

fn outcome_kind(outcome: &CommandResult) -> Option<FailureKind> {
    match outcome {
        Ok(CommandEnding::Fine) => None,
        Ok(CommandEnding::Reported(kind)) => Some(*kind),
        Err(failure) => Some(failure.kind),
    }
}

/// Reports a failure on stdout as JSON, or else on stderr. Returns the stream of the report.
fn report_failure(console: &Console, failure: &Failure) -> Option<OutputStream> {
    if failure.kind == FailureKind::OutputClosed {
        return None;
    }
    if console.mode.json && console.print_json(&failure.document()).is_ok() {
        return Some(OutputStream::Stdout);
    }
    report_message(console, failure);
    Some(OutputStream::Stderr)
}

/// Reports a failure on stderr.
fn report_message(console: &Console, failure: &Failure) {
    if failure.kind != FailureKind::OutputClosed {
        console.say(wrap(&render_failure(failure), console.stderr_width()));
    }
}

impl CommandSession {
    fn new(context: CliContext, console: Arc<Console>, common: &CommonArgs) -> Result<Self, Failure> {
        let mut limits = Limits::default().one_shot();
        if let Some(timeout) = common.timeout {
            limits.startup = timeout;
            limits.call_timeout = timeout;
            limits.call_total_timeout = limits.call_total_timeout.max(timeout);
        }
        let trace = common.trace.as_deref().map(TraceFile::create).transpose()?.map(Arc::new);
        let CliContext { environment, config, .. } = context;
        for (name, path) in ignored_variables(&environment) {
            let path = UntrustedText::new(path.to_string_lossy());
            console.warn(format_args!("ignoring {name}=`{path}`: set it to an absolute path, or unset it"));
        }
        let mut configuration = ConfigContext::new(config.clone(), &environment, Arc::clone(&console));
        configuration.account.clone_from(&common.account);
        let configuration = Arc::new(configuration);
        Ok(Self {
            accounts: Arc::new(ServerAccounts::new(configuration.clone(), common.account.clone())),
            logs: configuration.state.as_deref().map(|state| Arc::new(ServerLogs::in_state_dir(state))),
            configuration,
            console,
            environment,
            limits,
            trace,
            timeout: common.timeout,
            config_args: config,
            signal: CommandSignal::default(),
            logins: Mutex::default(),
            open: Mutex::default(),
            hosts: Mutex::default(),
            shutdown_tasks: Mutex::default(),
        })
    }

    /// Creates a session for another environment, with the same console. Its owner closes it.
    ///
    /// # Errors
    ///
    /// Fails as the start of a command does.
    pub fn for_environment(
        console: &Arc<Console>,
        environment: Environment,
        config: ConfigArgs,
    ) -> Result<Self, Failure> {
        let context = CliContext { environment, color: console.mode.color, config };
        Self::new(context, Arc::clone(console), &CommonArgs::default())
    }

    /// Creates a session with the same environment and configuration, whose owner closes it.
    ///
    /// # Errors
    ///
    /// Fails as the start of a command does.
    pub fn duplicate(&self) -> Result<Self, Failure> {
        Self::for_environment(&self.console, self.environment.clone(), self.config_args.clone())
    }

    /// Leaves the first SIGINT, SIGTERM or SIGHUP to the command, which ends by itself after it. The value becomes true
    /// then. A second signal still ends the process.
    pub fn handle_signal(&self) -> watch::Receiver<bool> {
        self.signal.is_handled.store(true, Ordering::Release);
        self.signal.is_received.subscribe()
    }

    /// Waits for a signal that ends the command.
    async fn wait_for_interrupt(&self, signal: &mut FirstSignal) {
        signal.wait().await;
        if self.signal.is_handled.load(Ordering::Acquire) {
            self.signal.is_received.send_replace(true);
            std::future::pending::<()>().await;
        }
    }

    /// Returns the maximum duration of a call.
    pub fn call_max(&self) -> Duration {
        self.limits.call_total_timeout
    }

    /// Returns the limits and timeouts of this command.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the limits for a host that keeps running, where servers get more time to stop.
    pub fn managed_host_limits(&self) -> Limits {
        let Limits { stop_grace, term_grace, .. } = Limits::default();
        let mut limits = self.limits.clone();
        (limits.stop_grace, limits.term_grace) = (stop_grace, term_grace);
        limits
    }

    /// Returns the value of `--timeout`.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns the connect options of a server, with its login.
    pub fn connect_options_for(&self, entry: &ServerEntry) -> ConnectOptions {
        let mut options = self.connect_options(entry.name.as_str());
        options.authorizer = self.account(entry).map(|account| Arc::new(account) as Arc<dyn Authorizer>);
        options
    }

    /// Returns the account of an HTTP server.
    pub fn account(&self, entry: &ServerEntry) -> Option<Account> {
        match &entry.spec {
            ServerSpec::Http(spec) => {
                let words = login_arguments(entry.name.as_str(), spec);
                self.logins.lock().unwrap_or_else(PoisonError::into_inner).insert(entry.name.to_string(), words);
                self.accounts.for_server(entry.name.as_str(), spec)
            }
            ServerSpec::Stdio(_) => None,
        }
    }

    /// Completes the hints of a failure, so that it names a next step.
    fn with_next_step(&self, failure: Failure) -> Failure {
        let failure = self.with_login_hint(failure);
        let config = self.configuration.config().ok();
        let is_configured = |server: &String| config.is_some_and(|config| config.server(server).is_some());
        let server = failure.error.server.clone().filter(is_configured);
        failure.with_next_step(server.as_deref())
    }

    /// Completes a hint to log in with the arguments of the login in use.
    pub fn with_login_hint(&self, mut failure: Failure) -> Failure {
        let Some(server) = &failure.error.server else { return failure };
        if let Some(words) = self.logins.lock().unwrap_or_else(PoisonError::into_inner).get(server) {
            let (short, full) = (format!("{LOGIN_COMMAND} {server} "), format!("{LOGIN_COMMAND} {words} "));
            let is_short = |hint: &&mut String| hint.starts_with(&short) && !hint.starts_with(&full);
            for hint in failure.hints.iter_mut().filter(is_short) {
                *hint = format!("{full}{}", &hint[short.len()..]);
            }
        }
        failure
    }

    /// Returns the connect options of a server, without a login.
    pub fn connect_options(&self, server: &str) -> ConnectOptions {
        let mut options = ConnectOptions::default();
        options.name = server.to_owned();
        options.surroundings = self.environment.clone();
        options.limits = self.limits.clone();
        if let Some(console) = self.is_debugged(server).then(|| self.console.clone()) {
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

    /// Returns the tap for all messages, if `--debug` or `--trace` need one.
    pub fn tap(&self) -> Option<Arc<dyn Tap>> {
        let shown = match self.configuration.debugged_servers() {
            _ if self.console.mode.debug => ShownServers::All,
            servers => ShownServers::Only(servers),
        };
        let is_wanted = shown.is_any() || self.trace.is_some();
        let tap = || CommandTap { file: self.trace.clone(), console: self.console.clone(), shown };
        is_wanted.then(|| Arc::new(tap()) as Arc<dyn Tap>)
    }

    /// Reports whether the messages of a server are shown.
    fn is_debugged(&self, server: &str) -> bool {
        self.console.mode.debug || self.configuration.debugged_servers().iter().any(|name| name == server)
    }

    /// Returns the log for stderr output of servers. `None` without a state directory.
    pub fn process_log(&self) -> Option<Arc<dyn ProcessLog>> {
        self.logs.clone().map(|logs| logs as Arc<dyn ProcessLog>)
    }

    /// Tracks a connection, to close it at the end.
    pub fn track_connection(&self, connection: &Connection) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(connection.clone());
    }

    /// Tracks a host, to close it at the end.
    pub fn track_host(&self, host: &Host, events: EventReceiver) {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).push((host.clone(), events));
    }

    /// Spawns a task that must finish before the servers are closed, within a short time limit.
    pub fn on_shutdown(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.shutdown_tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
    }

    /// Closes everything in parallel.
    pub async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.shutdown_tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let _ =
            tokio::time::timeout(SHUTDOWN_TASKS_TIMEOUT, async { while tasks.join_next().await.is_some() {} }).await;
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        let hosts = std::mem::take(&mut *self.hosts.lock().unwrap_or_else(PoisonError::into_inner));
        let mut closing: JoinSet<()> =
            open.into_iter().map(|connection| async move { connection.close().await }).collect();
        hosts.into_iter().for_each(|(host, _events)| drop(closing.spawn(async move { host.close().await })));
        while closing.join_next().await.is_some() {}
        self.accounts.finish().await;
        if let Some(logs) = &self.logs {
            // Wait only briefly: this is for the last lines of servers that have just exited.
            let _ = tokio::time::timeout(LOG_FLUSH_TIMEOUT, logs.flush()).await;
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl CommandSession {
    /// Creates a session in this environment. For tests.
    pub fn for_tests(environment: Environment) -> Self {
        let mode = OutputMode { json: false, debug: false, info: false, color: ColorChoice::Never };
        let context = CliContext { environment, color: mode.color, config: Default::default() };
        Self::new(context, Arc::new(Console::new(mode)), &CommonArgs::default())
            .expect("nothing was asked for that can fail")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_and_booleans_are_parsed() {
        for (text, millis) in [("30", 30_000), ("2.5", 2500), ("7s", 7000), ("250ms", 250)] {
            assert_eq!(parse_timeout(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for (value, yes) in [("1", true), ("yes", true), ("", false), ("0", false), ("False", false), ("off", false)] {
            assert_eq!(is_truthy(value), yes, "{value}");
        }
        for text in ["", "0", "-1", "soon", "1e99", "ms", "NaN"] {
            assert!(parse_timeout(text).is_err(), "{text}");
        }
    }
}
