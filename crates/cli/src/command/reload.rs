//! `wharf reload`: makes a running `wharf` reload its configuration.

use wharf_spec::Untrusted;

use wharf_terminal::control::Answered;
use wharf_terminal::failure::{Ending, Kind, Outcome};
use wharf_terminal::fleet::Reloaded;
use wharf_terminal::session::{CommonArgs, Session};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
`wharf` follows its files by itself, `wharf run` when it is told to; this has them look now. They are found by the working
directory and --config. The exit code is 2 when something in the configuration could not be taken over: it is said what.

Examples:
  wharf reload
  wharf reload --json")]
pub struct Args {
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl Args {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { json: self.json, ..CommonArgs::default() }
    }
}

pub async fn run(session: &Session) -> Outcome {
    let answered = Answered::<Reloaded>::by(session, "mcp.reload").await?;
    for problem in &answered.said.problems {
        session.console.warn(Untrusted::new(problem.as_str()));
    }
    answered.show(session, |answered| answered.said.words())?;
    Ok(if answered.said.success { Ending::Fine } else { Ending::Told(Kind::Usage) })
}
