//! `wharf reload`: makes a running `wharf` reload its configuration.

use wharf_spec::UntrustedText;

use wharf_terminal::control::ControlResponse;
use wharf_terminal::failure::{CommandEnding, CommandResult, FailureKind};
use wharf_terminal::managed_host::ReloadReport;
use wharf_terminal::session::{CommandSession, JsonArgs};

/// Make a running wharf reload its configuration
#[derive(Debug, clap::Args)]
#[command(after_help = "\
`wharf` reloads changed files automatically, `wharf run` on request only. The process to reload is found by the \
working directory and --config. The exit code is 2 if part of the configuration could not be applied; the \
problems are printed.

Examples:
  wharf reload
  wharf reload --json")]
pub struct ReloadArgs {
    #[command(flatten)]
    pub output: JsonArgs,
}

pub async fn run(_: &ReloadArgs, session: &CommandSession) -> CommandResult {
    let answered = ControlResponse::<ReloadReport>::request(session, "mcp.reload").await?;
    for problem in &answered.body.problems {
        session.console.warn(UntrustedText::new(problem.as_str()));
    }
    answered.show(session, answered.body.success, |answered| answered.body.describe())?;
    Ok(if answered.body.success { CommandEnding::Fine } else { CommandEnding::Reported(FailureKind::Usage) })
}
