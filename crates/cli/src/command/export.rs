//! `wharf export`: prints servers in another program's configuration format.

use serde::Serialize;
use serde_json::{Map, Value};
use wharf_config::ConfiguredServer;
use wharf_config::clients::{ExternalClient, export};
use wharf_spec::ActivationState;

use crate::command::clients::{note_line, unknown_client};
use wharf_terminal::config_context::usage_refusal;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::session::{CommandSession, JsonArgs};

/// Export servers in the format of another program
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file goes to stdout, and notes on unsupported settings to stderr. Variables and secrets stay references; \
values in clear text are exported in clear text.

Examples:
  wharf export cursor > .cursor/mcp.json
  wharf export codex git docs >> ~/.codex/config.toml
  wharf export vs-code --json | jq -r .text")]
pub struct ExportArgs {
    /// Program: claude-code, claude-desktop, cursor, vs-code, codex, gemini, opencode, goose, zed or windsurf
    client: String,
    /// Servers to export; default: all in effect
    servers: Vec<String>,
    #[command(flatten)]
    pub output: JsonArgs,
}

#[derive(Serialize)]
struct ExportDocument<'a> {
    client: &'static str,
    text: &'a str,
    notes: Vec<String>,
}

pub async fn run(args: &ExportArgs, session: &CommandSession) -> CommandResult {
    let client = ExternalClient::from_name(&args.client).ok_or_else(|| unknown_client(&args.client))?;
    let config = session.configuration.config()?;
    let mut wanted = Vec::new();
    for server in config.servers.iter().filter(|_| args.servers.is_empty()) {
        match export_refusal(server) {
            None => wanted.push(server),
            Some(failure) => session.console.warn(format_args!("skipping {}: {}", server.name, failure.error.message)),
        }
    }
    for name in &args.servers {
        let server = session.configuration.find(name)?;
        match export_refusal(server) {
            None => wanted.push(server),
            Some(failure) => return Err(failure),
        }
    }
    let servers: Vec<_> = wanted.iter().map(|server| (server.name.to_string(), entry_for_export(server))).collect();
    let exported = export(client, &servers);
    let notes: Vec<String> = exported.notes.iter().map(note_line).collect();
    if session.console.mode.json {
        let document = ExportDocument { client: client.name(), text: &exported.text, notes };
        session.console.print_document(true, &document)?;
        return Ok(CommandEnding::Fine);
    }
    session.console.print(&exported.text)?;
    for note in notes {
        session.console.warn(note);
    }
    Ok(CommandEnding::Fine)
}

/// Returns the reason not to export a server: the other program would run it without approval.
fn export_refusal(server: &ConfiguredServer) -> Option<Failure> {
    usage_refusal(server).filter(|_| server.described.is_err() || server.activation() == ActivationState::Unapproved)
}

/// Returns the entry with its texts escaped if the source file does not expand references.
fn entry_for_export(server: &ConfiguredServer) -> Map<String, Value> {
    let expands = server.described.as_ref().is_ok_and(|described| described.expands);
    let Value::Object(entry) =
        (if expands { Value::Object(server.written.clone()) } else { escape_references(&server.written) })
    else {
        return Map::new();
    };
    entry
}

/// Escapes references in all texts of an entry.
fn escape_references(entry: &Map<String, Value>) -> Value {
    fn escape_value(value: &Value) -> Value {
        match value {
            Value::String(text) => text.replace("${", "$${").into(),
            Value::Array(items) => items.iter().map(escape_value).collect(),
            Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), escape_value(value))).collect(),
            other => other.clone(),
        }
    }
    escape_value(&Value::Object(entry.clone()))
}
