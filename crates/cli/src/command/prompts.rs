//! `wharf prompts`.

use wharf_wire::PromptDefinition;

use wharf_terminal::failure::CommandResult;
use wharf_terminal::listing::list;
use wharf_terminal::servers::ServerArgs;
use wharf_terminal::session::{CommandSession, CommonArgs};

/// List the prompts of servers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf prompts
  wharf prompts NAME
  wharf prompts --stdio \"wharf demo-server\"
  wharf prompts --json | jq '.items[] | {name, arguments}'")]
pub struct PromptsArgs {
    #[command(flatten)]
    servers: ServerArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

pub async fn run(args: &PromptsArgs, session: &CommandSession) -> CommandResult {
    list::<PromptDefinition>(session, &args.servers).await
}
