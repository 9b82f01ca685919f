//! `wharf templates`.

use wharf_wire::ResourceTemplate;

use wharf_terminal::failure::CommandResult;
use wharf_terminal::listing::list;
use wharf_terminal::servers::ServerArgs;
use wharf_terminal::session::{CommandSession, CommonArgs};

/// List the resource templates of servers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf templates
  wharf templates NAME
  wharf templates --stdio \"wharf demo-server\"
  wharf read demo://dock/north-1 --stdio \"wharf demo-server\"")]
pub struct TemplatesArgs {
    #[command(flatten)]
    servers: ServerArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

pub async fn run(args: &TemplatesArgs, session: &CommandSession) -> CommandResult {
    list::<ResourceTemplate>(session, &args.servers).await
}
