//! From entries of our shape to a client's file.

use std::borrow::Cow;

use serde_json::{Map, Value as Json, json};

use super::Client;
use super::filling::{Filling, LeftOut};
use super::note::{Note, shown};
use super::tables::shape;
use super::write::write;

/// A client's file.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// The whole file.
    pub text: String,
    /// What is not the same there, each with the server it is about.
    pub notes: Vec<Note>,
}

/// Writes a file of a client's own from these servers, by their ids. Values are written as they are.
///
/// A server the client would treat as something else, such as one that is switched off where nothing can be, is left
/// out, and a note says so.
pub fn export(client: Client, servers: &[(String, Map<String, Json>)]) -> Exported {
    let mut notes = Vec::new();
    let mut written = Map::new();
    let mut beside = Beside::default();
    for (id, entry) in servers {
        let entry = beside.switched(client, id, entry);
        let mut filling = Filling::new(client, &entry);
        match filling.fill() {
            Ok(server) => {
                written.insert(id.clone(), Json::Object(completed(client, id, server)));
                beside.secrets.append(&mut filling.secrets);
                notes.extend(filling.notes.into_iter().map(|note| about(id, note)));
            }
            Err(LeftOut(why)) => notes.push(about(id, Note::lost(format!("{why}, and is left out")))),
        }
    }
    Exported { text: write(shape(client).format, &file(client, written, beside)), notes }
}

/// What is said beside the servers.
#[derive(Default)]
struct Beside {
    /// Secrets people are asked for.
    secrets: Vec<String>,
    /// Servers that are switched off in a list of their own.
    excluded: Vec<String>,
}

impl Beside {
    /// The entry, but for being switched off where that is said beside it.
    fn switched<'a>(&mut self, client: Client, id: &str, entry: &'a Map<String, Json>) -> Cow<'a, Map<String, Json>> {
        if client != Client::Gemini || entry.get("enabled") != Some(&Json::Bool(false)) {
            return Cow::Borrowed(entry);
        }
        self.excluded.push(id.to_owned());
        let mut entry = entry.clone();
        entry.remove("enabled");
        Cow::Owned(entry)
    }
}

fn about(id: &str, note: Note) -> Note {
    Note { text: format!("`{}`: {}", shown(id), note.text), ..note }
}

/// Adds what a client insists on.
fn completed(client: Client, id: &str, mut server: Map<String, Json>) -> Map<String, Json> {
    if client == Client::Goose {
        server.insert("name".to_owned(), Json::from(id));
        server.entry("enabled").or_insert(Json::Bool(true));
        server.entry("description").or_insert_with(|| Json::from(""));
    }
    server
}

fn file(client: Client, servers: Map<String, Json>, beside: Beside) -> Map<String, Json> {
    let path = shape(client).roots.first().copied().unwrap_or_default();
    let nested = |inner: Json, key: &&str| Json::Object(Map::from_iter([((*key).to_owned(), inner)]));
    let root = path.iter().rev().fold(Json::Object(servers), nested);
    let Json::Object(mut file) = root else { return Map::new() };
    if client == Client::Opencode {
        file.insert("$schema".to_owned(), Json::from("https://opencode.ai/config.json"));
    }
    if !beside.secrets.is_empty() {
        file.insert("inputs".to_owned(), inputs(beside.secrets));
    }
    if !beside.excluded.is_empty() {
        file.insert("mcp".to_owned(), json!({ "excluded": beside.excluded }));
    }
    file
}

/// Secrets as what VS Code asks people for.
fn inputs(mut secrets: Vec<String>) -> Json {
    secrets.sort();
    secrets.dedup();
    let input = |name: String| json!({ "type": "promptString", "id": name, "description": name, "password": true });
    secrets.into_iter().map(input).collect()
}
