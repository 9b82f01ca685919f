//! Services of a command for its server: questions to the user, roots and logs.
//!
//! Only services that are available are declared to a server. Sampling is not supported yet.

mod elicitor;
pub mod logs;
mod roots;

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use tokio::sync::mpsc;
use wharf_client::{ClientServices, Connection, ServerFacts};
use wharf_wire::LogLevel;

use crate::failure::Failure;
use crate::session::CommandSession;

use elicitor::TerminalElicitor;
use logs::ConsoleLogSink;
use roots::FixedRoots;

/// Options of commands that provide services to their server.
#[derive(Debug, Default, Args)]
pub struct ServiceArgs {
    /// Answer the server's questions: a field's value, a whole JSON object, `decline` or `cancel`; repeatable
    #[arg(long = "answer", value_name = "NAME=VALUE|JSON|decline|cancel", help_heading = "Questions")]
    answers: Vec<String>,
    /// Allow forms to ask for passwords, keys and other secrets
    #[arg(long, help_heading = "Questions")]
    allow_secrets: bool,
    /// Root directory to announce to the server; repeatable
    #[arg(long = "root", value_name = "DIR", help_heading = "Server")]
    roots: Vec<PathBuf>,
    /// Show the server's log messages from this level on; default with --debug: info
    #[arg(long, value_name = "LEVEL", value_parser = level_parser(), help_heading = "Output")]
    log: Option<LogLevel>,
}

fn level_parser() -> impl clap::builder::TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(LogLevel::ALL.map(LogLevel::as_str)).try_map(|word| word.parse::<LogLevel>())
}

/// Services for a server, and the receiver of failures to answer.
pub struct OfferedServices {
    pub services: ClientServices,
    failures: mpsc::Receiver<Failure>,
}

impl ServiceArgs {
    /// Returns options as if these answers were given with `--answer`. Without answers, the user is prompted.
    pub fn with_answers(answers: &[&str]) -> Self {
        Self { answers: answers.iter().map(|answer| (*answer).to_owned()).collect(), ..Self::default() }
    }

    /// Prepares the requested services.
    ///
    /// # Errors
    ///
    /// Fails if a root is not a directory.
    pub fn prepare(&self, session: &CommandSession) -> Result<OfferedServices, Failure> {
        let (failure_tx, failures) = mpsc::channel(1);
        let person = TerminalElicitor::new(session, self.answers.clone(), self.allow_secrets, failure_tx);
        let mut services = ClientServices::default().elicitation(person);
        if !self.roots.is_empty() {
            services = services.roots(FixedRoots::resolve(&self.roots, &session.environment.cwd)?);
        }
        let by_default = session.console.mode.shows_info().then_some(LogLevel::Info);
        if let Some(level) = self.log.or(by_default) {
            services = services.logs(level, ConsoleLogSink(session.console.clone()));
        }
        Ok(OfferedServices { services, failures })
    }
}

impl OfferedServices {
    /// Runs work with the server. Stops it if a value of `--answer` does not fit its question, so that the server never
    /// acts on an unintended answer.
    ///
    /// # Errors
    ///
    /// Fails if the work fails or an answer does not fit.
    pub async fn run_until_failure<T>(&mut self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            outcome = work => outcome,
            Some(failure) = self.failures.recv() => Err(failure),
        }
    }
}

/// Warns if logs were requested but the server has none.
pub fn warn_of_logs(session: &CommandSession, services: &ClientServices, connection: &Connection) {
    let ServerFacts { name, capabilities, .. } = connection.facts();
    // With `--debug`, logs are enabled without a request.
    if services.logs.is_some() && !capabilities.logging && !session.console.mode.shows_info() {
        session.console.warn(format_args!("{name} does not support logging; no log messages will be shown"));
    }
}
