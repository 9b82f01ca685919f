//! Client program driven by the public MCP conformance suite. Runs Wharf's own client through one scenario.
//!
//! The suite passes the scenario and the URL of its server. The protocol revision is deliberately not read: the client
//! has to negotiate it. The suite judges conformance. This program fails only when a required operation fails.

#![forbid(unsafe_code)]

mod arguments;
mod full_usage;
mod login;
mod login_page;
mod prescribed_calls;
mod scenario;
mod schema;
mod services;
mod skills;

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use wharf_client::{ConnectOptions, Connection, connect_http};
use wharf_spec::HttpSpec;

use scenario::{Exercise, Scenario};

type ExerciseResult<T = ()> = Result<T, Box<dyn Error>>;

/// Below the suite's own timeout of 30 seconds, after which the suite kills only the shell between it and this program.
const SCENARIO_TIMEOUT: Duration = Duration::from_secs(25);

fn main() -> ExitCode {
    match Scenario::from_environment().and_then(|scenario| run(&scenario)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&*error);
            ExitCode::FAILURE
        }
    }
}

fn run(scenario: &Scenario) -> ExerciseResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let within = tokio::time::timeout(SCENARIO_TIMEOUT, run_scenario(scenario)).await;
        within.unwrap_or_else(|_| Err(format!("timed out after {} seconds", SCENARIO_TIMEOUT.as_secs()).into()))
    })
}

/// Connects, performs the exercise, and closes the connection even if the exercise failed.
async fn run_scenario(scenario: &Scenario) -> ExerciseResult {
    let connection = match connect(scenario).await {
        Err(error) if scenario.exercise == Exercise::BeRefused => return login::expect_login_refusal(&*error),
        connected => connected?,
    };
    let outcome = scenario.exercise.run(&connection, scenario).await;
    connection.close().await;
    outcome
}

async fn connect(scenario: &Scenario) -> ExerciseResult<Connection> {
    let mut options = ConnectOptions::default();
    options.name = "suite".to_owned();
    options.services = services::all_services();
    if scenario.requires_login() {
        let account = login::new_account(&scenario.server, &scenario.name, scenario.context.as_deref())?;
        options.authorizer = Some(Arc::new(account));
    }
    Ok(connect_http(&HttpSpec::new(scenario.server.clone()), options).await?)
}

/// Prints the error to stderr, which the suite shows. A closed stderr is ignored.
fn print_error(error: &dyn Error) {
    let _ = writeln!(std::io::stderr(), "wharf-conformance-client: {error}");
}
