//! `wharf resources`.

use wharf_wire::Resource;

use wharf_terminal::failure::Outcome;
use wharf_terminal::listing::list;
use wharf_terminal::servers::ServerArgs;
use wharf_terminal::session::{CommonArgs, Session};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf resources
  wharf resources NAME
  wharf resources --stdio \"wharf demo-server\"
  wharf resources --json --stdio \"wharf demo-server\" | jq -r '.items[].uri'")]
pub struct Args {
    #[command(flatten)]
    servers: ServerArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    list::<Resource>(session, &args.servers).await
}
