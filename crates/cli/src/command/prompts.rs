//! `wharf prompts`.

use wharf_wire::PromptDefinition;

use wharf_terminal::failure::Outcome;
use wharf_terminal::listing::list;
use wharf_terminal::servers::ServerArgs;
use wharf_terminal::session::{CommonArgs, Session};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf prompts
  wharf prompts NAME
  wharf prompts --stdio \"wharf demo-server\"
  wharf prompts --json --stdio \"wharf demo-server\" | jq '.items[] | {name, arguments}'")]
pub struct Args {
    #[command(flatten)]
    servers: ServerArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    list::<PromptDefinition>(session, &args.servers).await
}
