//! `wharf hold`: keeps servers open until a line on stdin or a signal. Used by the reliability tests.

use clap::ValueEnum;
use wharf_client::Connection;

use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::servers::{ServerArgs, connect_each};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::stdin;

/// Keep servers open until a line on stdin or a signal; for tests
#[derive(Debug, clap::Args)]
#[command(hide = true, after_help = "Examples:\n  wharf hold --stdio \"wharf demo-server\" --then close")]
pub struct HoldArgs {
    #[command(flatten)]
    servers: ServerArgs,
    /// Action once ready, instead of reading it from stdin
    #[arg(long)]
    then: Option<HoldAction>,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum HoldAction {
    /// Close everything and exit successfully
    Close,
    /// Panic with all servers open
    Panic,
}

pub async fn run(args: &HoldArgs, session: &CommandSession) -> CommandResult {
    let (servers, failures) = args.servers.resolve(session).await?;
    if let Some(failure) = failures.into_iter().next() {
        return Err(failure);
    }
    let held = connect_each(session, &servers, |connection| async { Ok(connection) }).await?;
    let held = held.into_iter().collect::<Result<Vec<Connection>, Failure>>()?;
    session.console.print(format_args!("ready {}\n", held.len()))?;
    let then = match args.then {
        Some(then) => then,
        None => read_action().await?,
    };
    match then {
        HoldAction::Close => Ok(CommandEnding::Fine),
        HoldAction::Panic => panic!("asked to panic"),
    }
}

/// Waits for a line that names an action. Ignores other lines and the end of input.
async fn read_action() -> Result<HoldAction, Failure> {
    let mut lines = stdin::lines().map_err(Failure::other)?;
    while let Some(line) = lines.recv().await {
        if let Ok(then) = HoldAction::from_str(line.trim(), true) {
            return Ok(then);
        }
    }
    std::future::pending().await
}
