//! The program that the public conformance suite drives: our own client, doing what a scenario exercises.
//!
//! The suite says which scenario it plays and where its server is. Which revision it plays is deliberately not read:
//! finding that out is what the client is for. What is right or wrong is the suite's to say; this program only fails
//! when something that has to work does not.

#![forbid(unsafe_code)]

mod arguments;
mod headers;
mod login;
mod page;
mod scenario;
mod schema;
mod services;
mod skills;
mod tour;

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use wharf_client::{ConnectOptions, Connection, connect_http};
use wharf_spec::HttpSpec;

use scenario::{Exercise, Scenario};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The suite gives up after 30 seconds and then ends only the shell between us.
const DEADLINE: Duration = Duration::from_secs(25);

fn main() -> ExitCode {
    match Scenario::from_environment().and_then(|scenario| run(&scenario)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&*error);
            ExitCode::FAILURE
        }
    }
}

fn run(scenario: &Scenario) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let within = tokio::time::timeout(DEADLINE, play(scenario)).await;
        within.unwrap_or_else(|_| Err(format!("not done within {} seconds", DEADLINE.as_secs()).into()))
    })
}

/// Connects, does what is to be done, and takes leave, also of a server with which it went wrong.
async fn play(scenario: &Scenario) -> Outcome {
    let connection = match connect(scenario).await {
        Err(error) if scenario.exercise == Exercise::BeRefused => return login::is_refusal(&*error),
        connected => connected?,
    };
    let outcome = scenario.exercise.perform(&connection, scenario).await;
    connection.close().await;
    outcome
}

async fn connect(scenario: &Scenario) -> Outcome<Connection> {
    let mut options = ConnectOptions::default();
    options.name = "suite".to_owned();
    options.services = services::all();
    if scenario.is_protected() {
        let account = login::account(&scenario.server, &scenario.name, scenario.context.as_deref())?;
        options.authorizer = Some(Arc::new(account));
    }
    Ok(connect_http(&HttpSpec::new(scenario.server.clone()), options).await?)
}

/// Says why on stderr, which the suite shows. Nothing can be done about a stderr that is gone.
fn complain(error: &dyn Error) {
    let _ = writeln!(std::io::stderr(), "wharf-conformance-client: {error}");
}
