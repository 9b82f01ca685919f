//! Conversion of entries to another client's file.

use std::borrow::Cow;

use serde_json::{Map, Value as Json, json};

use super::ExternalClient;
use super::client_schemas::client_schema;
use super::note::{ConversionNote, displayed_name};
use super::server_writer::{ServerWriter, UnsupportedSetting};
use super::write::write;

/// An exported client file.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedFile {
    /// Content of the file.
    pub text: String,
    /// Notes about differences, each with its server.
    pub notes: Vec<ConversionNote>,
}

/// Writes a client's file with these servers, by id. Values are written unchanged.
///
/// Omits a server that the client would handle differently, such as a disabled server if the client has no such
/// setting, and adds a note.
pub fn export(client: ExternalClient, servers: &[(String, Map<String, Json>)]) -> ExportedFile {
    let mut notes = Vec::new();
    let mut written = Map::new();
    let mut beside = FileExtras::default();
    for (id, entry) in servers {
        let entry = beside.extract_disabled(client, id, entry);
        let mut filling = ServerWriter::new(client, &entry);
        match filling.write_server() {
            Ok(server) => {
                written.insert(id.clone(), Json::Object(add_required_members(client, id, server)));
                beside.secrets.append(&mut filling.secrets);
                notes.extend(filling.notes.into_iter().map(|note| prefix_with_server(id, note)));
            }
            Err(UnsupportedSetting(why)) => {
                notes.push(prefix_with_server(id, ConversionNote::lost(format!("skipped: {why}"))))
            }
        }
    }
    ExportedFile { text: write(client_schema(client).format, &build_file(client, written, beside)), notes }
}

/// Returns a server as the client's file has it, if the client can use it. Used where notes are of no interest.
pub(super) fn client_server(client: ExternalClient, id: &str, entry: &Map<String, Json>) -> Option<Map<String, Json>> {
    let server = ServerWriter::new(client, entry).write_server().ok()?;
    Some(add_required_members(client, id, server))
}

/// Members of the file besides the servers.
#[derive(Default)]
struct FileExtras {
    /// Secrets for which the client prompts.
    secrets: Vec<String>,
    /// Servers disabled by a separate list.
    excluded: Vec<String>,
}

impl FileExtras {
    /// Returns the entry without its `enabled` flag, if the client disables servers in a separate list.
    fn extract_disabled<'a>(
        &mut self,
        client: ExternalClient,
        id: &str,
        entry: &'a Map<String, Json>,
    ) -> Cow<'a, Map<String, Json>> {
        if client != ExternalClient::Gemini || entry.get("enabled") != Some(&Json::Bool(false)) {
            return Cow::Borrowed(entry);
        }
        self.excluded.push(id.to_owned());
        let mut entry = entry.clone();
        entry.remove("enabled");
        Cow::Owned(entry)
    }
}

fn prefix_with_server(id: &str, note: ConversionNote) -> ConversionNote {
    ConversionNote { text: format!("`{}`: {}", displayed_name(id), note.text), ..note }
}

/// Adds the members that a client requires.
fn add_required_members(client: ExternalClient, id: &str, mut server: Map<String, Json>) -> Map<String, Json> {
    if client == ExternalClient::Goose {
        server.insert("name".to_owned(), Json::from(id));
        server.entry("enabled").or_insert(Json::Bool(true));
        server.entry("description").or_insert_with(|| Json::from(""));
    }
    server
}

fn build_file(client: ExternalClient, servers: Map<String, Json>, beside: FileExtras) -> Map<String, Json> {
    let path = client_schema(client).roots.first().copied().unwrap_or_default();
    let nested = |inner: Json, key: &&str| Json::Object(Map::from_iter([((*key).to_owned(), inner)]));
    let root = path.iter().rev().fold(Json::Object(servers), nested);
    let Json::Object(mut file) = root else { return Map::new() };
    if client == ExternalClient::Opencode {
        file.insert("$schema".to_owned(), Json::from("https://opencode.ai/config.json"));
    }
    if !beside.secrets.is_empty() {
        file.insert("inputs".to_owned(), secret_prompts(beside.secrets));
    }
    if !beside.excluded.is_empty() {
        file.insert("mcp".to_owned(), json!({ "excluded": beside.excluded }));
    }
    file
}

/// Converts secrets to input prompts of VS Code.
fn secret_prompts(mut secrets: Vec<String>) -> Json {
    secrets.sort();
    secrets.dedup();
    let input = |name: String| json!({ "type": "promptString", "id": name, "description": name, "password": true });
    secrets.into_iter().map(input).collect()
}
