//! `wharf resources`.

use wharf_wire::Resource;

use wharf_terminal::failure::Outcome;
use wharf_terminal::listing::list;
use wharf_terminal::servers::ManyServers;
use wharf_terminal::session::{Common, Session};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf resources
  wharf resources NAME
  wharf resources --stdio \"wharf demo-server\"
  wharf resources --json --stdio \"wharf demo-server\" | jq -r '.items[].uri'")]
pub struct Args {
    #[command(flatten)]
    servers: ManyServers,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    list::<Resource>(session, &args.servers).await
}
