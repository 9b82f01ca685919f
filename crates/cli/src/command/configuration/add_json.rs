//! `wharf add-json`.

use serde_json::{Map, Value};

use super::add::{EntryDestination, parse_server_name, validate_and_write};
use wharf_terminal::failure::{CommandResult, Failure};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::stdin;

/// Add a server from a JSON entry
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The entry is the object under the id in a configuration file; `wharf schema` describes its \
keys. The entry {\"enabled\": false} disables a server of a lower layer for this project.

Examples:
  wharf add-json docs '{\"url\": \"https://example.org/mcp\"}'
  wharf add-json git --scope global \\
      '{\"command\": \"uvx\", \"args\": [\"mcp-server-git\"]}'
  wharf add-json noisy '{\"enabled\": false}'
  jq .mcpServers.docs other.json | wharf add-json docs -")]
pub struct AddJsonArgs {
    /// Name of the server: 1 to 64 letters, digits, _ and -
    id: String,
    /// Entry as a JSON object; - reads stdin
    #[arg(value_name = "JSON", allow_hyphen_values = true)]
    entry: String,
    #[command(flatten)]
    destination: EntryDestination,
}

impl AddJsonArgs {
    pub fn common(&self) -> CommonArgs {
        self.destination.common()
    }
}

pub async fn run(args: &AddJsonArgs, session: &CommandSession) -> CommandResult {
    let name = parse_server_name(&args.id)?;
    let entry = match args.entry.as_str() {
        "-" => parse_object(&stdin::read_all().await.map_err(Failure::other)?)?,
        text => parse_object(text)?,
    };
    validate_and_write(session, &name, entry, &args.destination).await
}

/// Parses a JSON object. The failure does not repeat the text, which may hold secrets.
fn parse_object(text: &str) -> Result<Map<String, Value>, Failure> {
    let example = "as in '{\"command\": \"npx\", \"args\": [\"-y\", \"some-server\"]}'";
    match serde_json::from_str(text) {
        Ok(Value::Object(entry)) => Ok(entry),
        Ok(_) => Err(Failure::usage("the entry is not a JSON object").with_hint(example)),
        Err(error) => {
            let at = format!("line {}, column {}", error.line(), error.column());
            Err(Failure::usage(format_args!("the entry is not valid JSON at {at}")).with_hint(example))
        }
    }
}
