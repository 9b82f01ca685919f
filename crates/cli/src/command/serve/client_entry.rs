//! `wharf serve --print-config`: the entry by which another program uses the gateway.

use serde_json::{Map, Value, json};
use wharf_config::clients::{ExternalClient, export};
use wharf_terminal::failure::Failure;
use wharf_terminal::gateway_socket::ViewRequest;
use wharf_terminal::session::CommandSession;

use crate::command::clients::{note_line, unknown_client};

/// Id of the gateway in the files of other programs.
pub const GATEWAY_ID: &str = "wharf";

/// Prints the entry for a program.
///
/// # Errors
///
/// Fails if the program is unknown.
pub fn print(session: &CommandSession, client: &str, view: &ViewRequest) -> Result<(), Failure> {
    let client = ExternalClient::from_name(client).ok_or_else(|| unknown_client(client))?;
    let exported = export(client, &[(GATEWAY_ID.to_owned(), own_entry(view)?)]);
    session.console.print(&exported.text)?;
    exported.notes.iter().for_each(|note| session.console.warn(note_line(note)));
    Ok(())
}

/// Returns the entry that runs `wharf serve` of this program.
///
/// # Errors
///
/// Fails if the path of this program is unknown.
pub fn own_entry(view: &ViewRequest) -> Result<Map<String, Value>, Failure> {
    // A program without a shell may have another search path.
    let program = std::env::current_exe().map_err(Failure::other)?;
    Ok(gateway_entry(&program.to_string_lossy(), view))
}

fn gateway_entry(program: &str, view: &ViewRequest) -> Map<String, Value> {
    let mut words = vec!["serve".to_owned()];
    let mut add = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
    view.servers.iter().for_each(|server| add("--server", server));
    view.profile.iter().for_each(|profile| add("--profile", profile));
    if let Some(plain) = view.plain_names {
        add("--names", if plain { "plain" } else { "server" });
    }
    // `$` begins a reference in some of the formats.
    let escape = |word: &str| word.replace("${", "$${");
    let words: Vec<String> = words.iter().map(|word| escape(word)).collect();
    Map::from_iter([("command".to_owned(), json!(escape(program))), ("args".to_owned(), json!(words))])
}
