//! What a command does for the server it talks to: asks the person, names directories, shows logs.
//!
//! Nothing here is declared to a server unless it can be done. A model is not lent to anybody yet.

mod logs;
mod person;
mod roots;

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use tokio::sync::mpsc;
use wharf_client::{Connection, ServerFacts, Services};
use wharf_wire::LogLevel;

use crate::failure::Failure;
use crate::session::Session;

use logs::Logs;
use person::Person;
use roots::Roots;

/// What every command takes whose server may ask something back.
#[derive(Debug, Default, Args)]
pub struct ServiceArgs {
    /// Answer what the server asks without asking you: a field's value, a whole JSON object, or a plain no; may be
    /// repeated
    #[arg(long = "answer", value_name = "NAME=VALUE|JSON|decline|cancel", help_heading = "Questions")]
    answers: Vec<String>,
    /// Let a form ask for passwords, keys and the like
    #[arg(long, help_heading = "Questions")]
    allow_secrets: bool,
    /// A directory the server may know of and work in; may be repeated
    #[arg(long = "root", value_name = "DIR", help_heading = "Server")]
    roots: Vec<PathBuf>,
    /// Show what the server logs, from this level on; with --debug, from info on
    #[arg(long, value_name = "LEVEL", value_parser = level_parser(), help_heading = "Output")]
    log: Option<LogLevel>,
}

fn level_parser() -> impl clap::builder::TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(LogLevel::ALL.map(LogLevel::as_str)).try_map(|word| word.parse::<LogLevel>())
}

/// What is done for a server, and the ear for answers that turn out not to fit.
pub struct Offer {
    pub services: Services,
    misfits: mpsc::Receiver<Failure>,
}

impl ServiceArgs {
    /// As if these had been given with `--answer`; without any, the person is asked.
    pub fn answering(answers: &[&str]) -> Self {
        Self { answers: answers.iter().map(|answer| (*answer).to_owned()).collect(), ..Self::default() }
    }

    /// Makes ready what was asked for. Fails for a directory that is none.
    pub fn offer(&self, session: &Session) -> Result<Offer, Failure> {
        let (misfit, misfits) = mpsc::channel(1);
        let person = Person::new(session, self.answers.clone(), self.allow_secrets, misfit);
        let mut services = Services::default().elicitation(person);
        if !self.roots.is_empty() {
            services = services.roots(Roots::find(&self.roots, &session.surroundings.cwd)?);
        }
        let by_default = session.console.manner.debug.then_some(LogLevel::Info);
        if let Some(level) = self.log.or(by_default) {
            services = services.logs(level, Logs(session.console.clone()));
        }
        Ok(Offer { services, misfits })
    }
}

impl Offer {
    /// Waits for some work with the server. An answer of `--answer` that does not fit its question ends it: better
    /// nothing is done than something that nobody meant.
    pub async fn during<T>(&mut self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            outcome = work => outcome,
            Some(failure) = self.misfits.recv() => Err(failure),
        }
    }
}

/// Says so where logs were asked for and there are none.
pub fn warn_of_logs(session: &Session, services: &Services, connection: &Connection) {
    let ServerFacts { name, capabilities, .. } = connection.facts();
    // With --debug nobody may have asked for them.
    if services.logs.is_some() && !capabilities.logging && !session.console.manner.debug {
        session.console.warn(format_args!("{name} offers no logs, so none will be shown"));
    }
}
