//! `wharf resources`.

use wharf_wire::Resource;

use wharf_terminal::failure::CommandResult;
use wharf_terminal::listing::list;
use wharf_terminal::servers::ServerArgs;
use wharf_terminal::session::{CommandSession, CommonArgs};

/// List the resources of servers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf resources
  wharf resources NAME
  wharf resources --stdio \"wharf demo-server\"
  wharf resources --json | jq -r '.items[].uri'")]
pub struct ResourcesArgs {
    #[command(flatten)]
    servers: ServerArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

pub async fn run(args: &ResourcesArgs, session: &CommandSession) -> CommandResult {
    list::<Resource>(session, &args.servers).await
}
