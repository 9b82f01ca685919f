//! `wharf export`: servers as the file of another program.

use serde::Serialize;
use wharf_config::clients::{Client, export};

use crate::command::clients::{known_clients, note_line};
use crate::failure::{Ending, Outcome};
use crate::session::{Common, Session};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file goes to stdout, and what the program has no word for is told on stderr. Variables and secrets stay references;
what stands in your configuration in clear stands there in clear as well.

Examples:
  wharf export cursor > .cursor/mcp.json
  wharf export codex git docs >> ~/.codex/config.toml
  wharf export vs-code --json | jq -r .text")]
pub struct Args {
    /// The program: claude-code, claude-desktop, cursor, vs-code, codex, gemini, opencode, goose, zed or windsurf
    client: String,
    /// The servers to write; all that count when absent
    servers: Vec<String>,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Serialize)]
struct ExportDocument<'a> {
    schema: u32,
    client: &'static str,
    text: &'a str,
    notes: Vec<String>,
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    let client = Client::from_name(&args.client).ok_or_else(|| known_clients(&args.client))?;
    let config = session.configuration.config()?;
    let mut wanted = Vec::new();
    if args.servers.is_empty() {
        wanted.extend(config.servers.iter().filter(|server| server.described.is_ok()));
    }
    for name in &args.servers {
        wanted.push(session.configuration.find(name)?);
    }
    let servers: Vec<_> = wanted.iter().map(|server| (server.name.to_string(), server.written.clone())).collect();
    let exported = export(client, &servers);
    let notes: Vec<String> = exported.notes.iter().map(note_line).collect();
    if session.console.manner.json {
        let document = ExportDocument { schema: 1, client: client.name(), text: &exported.text, notes };
        session.console.document(&document)?;
        return Ok(Ending::Fine);
    }
    session.console.print(&exported.text)?;
    for note in notes {
        session.console.warn(note);
    }
    Ok(Ending::Fine)
}
