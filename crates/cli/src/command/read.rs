//! `wharf read`.

use serde::Serialize;
use wharf_client::{CallOptions, Connection};
use wharf_spec::Untrusted;
use wharf_wire::{Raw, ReadResult};

use crate::content::resource_text;
use crate::failure::{Ending, Failure, Outcome};
use crate::servers::{OneServer, connect_one};
use crate::services::ServiceArgs;
use crate::session::{Common, Session};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf read demo://greeting --stdio \"wharf demo-server\"
  wharf read demo://logo --json --stdio \"wharf demo-server\" | jq -r '.contents[0].blob' | base64 -d > logo.png")]
pub struct Args {
    /// The resource's URI
    uri: String,
    #[command(flatten)]
    services: ServiceArgs,
    #[command(flatten)]
    server: OneServer,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Serialize)]
struct ReadDocument<'a> {
    schema: u32,
    server: &'a str,
    uri: &'a str,
    contents: &'a Raw,
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    let server = args.server.resolve(&session.surroundings, &session.console)?;
    let mut offer = args.services.offer(session)?;
    let connection = connect_one(session, &server, &offer.services).await?;
    let read = offer.during(fetch(&connection, &args.uri)).await?;
    if session.console.manner.json {
        let document = ReadDocument { schema: 1, server: &server.name, uri: &args.uri, contents: &read.contents_raw };
        session.console.document(&document)?;
    } else {
        let text = read.contents.iter().map(resource_text).collect::<Vec<_>>().join("\n");
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        session.console.print(format_args!("{}{end}", Untrusted::new(text.as_str()).block()))?;
    }
    Ok(Ending::Fine)
}

async fn fetch(connection: &Connection, uri: &str) -> Result<ReadResult, Failure> {
    connection.read_resource(uri, CallOptions::default()).await.map_err(|error| {
        let refused = error.is_refusal();
        let failure = Failure::calling(connection, error);
        if refused { failure.hint("`wharf resources` and `wharf templates` list what there is") } else { failure }
    })
}
