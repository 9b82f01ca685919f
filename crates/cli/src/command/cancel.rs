//! `wharf cancel`: cancels the agent's run in a running `wharf`.

use serde::{Deserialize, Serialize};

use wharf_terminal::control::ControlResponse;
use wharf_terminal::failure::{CommandEnding, CommandResult};
use wharf_terminal::session::{CommandSession, JsonArgs};

/// Cancel the agent's run in a running wharf
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Same as Ctrl-C there: pending calls are cancelled and their servers notified. The running wharf is found by the \
working directory and --config.

Examples:
  wharf cancel")]
pub struct CancelArgs {
    #[command(flatten)]
    pub output: JsonArgs,
}

/// Result of the `run.cancel` control request.
#[derive(Serialize, Deserialize)]
struct CancelResult {
    cancelled: bool,
}

pub async fn run(_: &CancelArgs, session: &CommandSession) -> CommandResult {
    let answered = ControlResponse::<CancelResult>::request(session, "run.cancel").await?;
    answered.show(session, true, |ControlResponse { process, body }| match body.cancelled {
        true => format!("cancelled the run of process {process}"),
        false => format!("process {process} is not running anything"),
    })?;
    Ok(CommandEnding::Fine)
}
