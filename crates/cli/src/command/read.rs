//! `wharf read`.

use std::path::PathBuf;

use serde::Serialize;
use wharf_client::{Connection, RequestOptions};
use wharf_spec::UntrustedText;
use wharf_wire::{RawJson, ReadResult};

use wharf_terminal::content::resources_text_saving;
use wharf_terminal::deny_rules::check_not_denied;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::saving::SaveDirectory;
use wharf_terminal::servers::{ServerArg, connect_one};
use wharf_terminal::services::ServiceArgs;
use wharf_terminal::session::{CommandSession, CommonArgs};

/// Read a resource
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf read harbour demo://greeting
  wharf read demo://greeting --stdio \"wharf demo-server\"
  wharf read demo://logo --json \\
      --stdio \"wharf demo-server\" \\
      | jq -r '.contents[0].blob' | base64 -d > logo.png")]
pub struct ReadArgs {
    /// Server (unless given by --stdio or --url), and resource URI
    #[arg(value_name = "SERVER> <URI", required = true, num_args = 1..=2)]
    words: Vec<String>,
    /// Save binary contents to this directory
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    save: Option<PathBuf>,
    #[command(flatten)]
    services: ServiceArgs,
    #[command(flatten)]
    server: ServerArg,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Serialize)]
struct ReadDocument<'a> {
    server: &'a str,
    uri: &'a str,
    contents: &'a RawJson,
    /// Files written by `--save`.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<&'a [PathBuf]>,
}

pub async fn run(args: &ReadArgs, session: &CommandSession) -> CommandResult {
    let (name, words) = args.server.split_server(&args.words);
    let [uri] = words else { return Err(usage_failure(args)) };
    let server = args.server.resolve(session, name).await?;
    check_not_denied(session, &server, "ReadMcpResource", &serde_json::json!({ "uri": uri }))?;
    let mut offer = args.services.prepare(session)?;
    let connection = connect_one(session, &server, &offer.services).await?;
    let read = offer.run_until_failure(read_resource(&connection, uri)).await?;
    let mut save_directory =
        args.save.as_deref().map(|path| SaveDirectory::open(session, path, &[server.name.as_str()])).transpose()?;
    let text = resources_text_saving(&read.contents, save_directory.as_mut())?;
    if session.console.mode.json {
        let saved = save_directory.as_ref().map(SaveDirectory::saved);
        let server = server.name.as_str();
        session.console.print_document(true, &ReadDocument { server, uri, contents: &read.contents_raw, saved })?;
    } else {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        session.console.print(format_args!("{}{end}", UntrustedText::new(text.as_str()).multiline()))?;
    }
    Ok(CommandEnding::Fine)
}

fn usage_failure(args: &ReadArgs) -> Failure {
    let failure = match args.words.as_slice() {
        [only] => Failure::usage(format_args!(
            "only `{}` was given; both a server and a URI are needed",
            UntrustedText::new(only)
        )),
        _ => Failure::usage("too many arguments: with --stdio or --url give only the URI"),
    };
    failure.with_hint("wharf read SERVER URI")
}

async fn read_resource(connection: &Connection, uri: &str) -> Result<ReadResult, Failure> {
    connection.read_resource(uri, RequestOptions::default()).await.map_err(|error| {
        let refused = error.is_error_response();
        let failure = Failure::from_call_error(connection, error);
        if refused {
            failure.with_hint("`wharf resources` and `wharf templates` list the available URIs")
        } else {
            failure
        }
    })
}
