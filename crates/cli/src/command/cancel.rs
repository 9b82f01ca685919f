//! `wharf cancel`: cancels what the agent of a running `wharf` is doing.

use serde_json::json;

use crate::control::Remote;
use crate::failure::{Ending, Outcome};
use crate::session::{Common, Session};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Does what Ctrl-C does there: calls under way are withdrawn, and their servers are told. The running wharf is found by the
working directory and --config.

Examples:
  wharf cancel")]
pub struct Args {
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl Args {
    pub fn common(&self) -> Common {
        Common { json: self.json, ..Common::default() }
    }
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    let mut remote = Remote::required(session).await?;
    let answer = remote.call("run.cancel", json!({})).await?;
    let cancelled = answer["cancelled"] == true;
    match (args.json, cancelled) {
        (true, _) => {
            session.console.document(&json!({ "schema": 1, "process": remote.pid, "cancelled": cancelled }))?
        }
        (false, true) => session.console.print(format_args!("cancelled the run of process {}\n", remote.pid))?,
        (false, false) => session.console.print(format_args!("process {} has no run under way\n", remote.pid))?,
    }
    Ok(Ending::Fine)
}
