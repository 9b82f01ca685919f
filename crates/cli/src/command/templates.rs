//! `wharf templates`.

use wharf_wire::ResourceTemplate;

use wharf_terminal::failure::Outcome;
use wharf_terminal::listing::list;
use wharf_terminal::servers::ServerArgs;
use wharf_terminal::session::{CommonArgs, Session};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf templates
  wharf templates NAME
  wharf templates --stdio \"wharf demo-server\"
  wharf read demo://dock/north-1 --stdio \"wharf demo-server\"")]
pub struct Args {
    #[command(flatten)]
    servers: ServerArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    list::<ResourceTemplate>(session, &args.servers).await
}
