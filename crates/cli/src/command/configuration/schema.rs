//! `wharf schema`.

use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::session::CommandSession;

/// Print the JSON Schema of configuration files
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The JSON Schema (2020-12) of configuration files, for editors and other programs.

Examples:
  wharf schema > wharf.schema.json
  wharf schema | jq '.\"$defs\".server.properties | keys'")]
pub struct SchemaArgs;

pub async fn run(_: &SchemaArgs, session: &CommandSession) -> CommandResult {
    let text = serde_json::to_string_pretty(&wharf_config::json_schema()).map_err(Failure::other)?;
    session.console.print(format_args!("{text}\n"))?;
    Ok(CommandEnding::Fine)
}
