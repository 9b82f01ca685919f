//! `wharf templates`.

use wharf_wire::ResourceTemplate;

use wharf_terminal::failure::Outcome;
use wharf_terminal::listing::list;
use wharf_terminal::servers::ManyServers;
use wharf_terminal::session::{Common, Session};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf templates
  wharf templates NAME
  wharf templates --stdio \"wharf demo-server\"
  wharf read demo://dock/north-1 --stdio \"wharf demo-server\"")]
pub struct Args {
    #[command(flatten)]
    servers: ManyServers,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    list::<ResourceTemplate>(session, &args.servers).await
}
