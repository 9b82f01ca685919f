//! Replaces servers of a client's file by another one, and keeps everything else of the file.
//!
//! The edited text is read again. If it does not have exactly the expected servers, the edit is refused: no server gets
//! lost, whatever the shape of the file.

use std::path::Path;

use serde_json::{Map, Value as Json};
use toml_edit::{DocumentMut, Item, TableLike};

use super::client_schemas::client_schema;
use super::export::{client_server, export};
use super::write::toml_table;
use super::{ExternalClient, ImportedServer, import};
use crate::FileFormat;
use crate::edit::{remove_setting, set_setting};

/// The server that takes the place of others.
#[derive(Debug, Clone, Copy)]
pub struct AddedServer<'a> {
    /// Its key in the file.
    pub id: &'a str,
    /// Its entry, in Wharf's own format.
    pub entry: &'a Map<String, Json>,
}

/// The reason that a file is not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceRefusal {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The client cannot use the server that is added.
    #[error("the program cannot use the new server")]
    Unsupported,
    /// Another server has the key of the one that is added.
    #[error("it has another server called `{0}`")]
    Taken(String),
    /// The edited file would have other servers than expected.
    #[error("its servers cannot be edited safely")]
    Unsafe,
}

/// Returns the text of a client's file with the servers at these paths replaced by another one.
///
/// # Errors
///
/// Returns the reason if the file cannot be edited without the loss of another server.
pub fn replace_servers(
    client: ExternalClient,
    text: &str,
    file: &Path,
    removed: &[Vec<String>],
    added: AddedServer<'_>,
) -> Result<String, ReplaceRefusal> {
    // The project of a file that groups servers by project.
    let project = removed.iter().find(|path| path[0] == "projects").map_or("", |path| path[1].as_str());
    let read = |text: &str| {
        import(client, text, file, Path::new(project)).map_err(|failure| ReplaceRefusal::Unreadable(failure.text))
    };
    let before = read(text)?;
    let server = client_server(client, added.id, added.entry).ok_or(ReplaceRefusal::Unsupported)?;
    let Some(holder) = removed.first().and_then(|path| path.split_last()).map(|(_, holder)| holder.to_vec()) else {
        return Ok(text.to_owned());
    };
    let mut place = holder;
    place.push(added.id.to_owned());
    let is_removed = |server: &ImportedServer| removed.contains(&server.path);
    if before.iter().any(|server| server.path == place && !is_removed(server) && !is_same(server, added)) {
        return Err(ReplaceRefusal::Taken(added.id.to_owned()));
    }
    let edit = FileEdit { client, text, before: &before, removed, place: &place };
    let format = FileFormat::from_extension(file).unwrap_or(client_schema(client).format);
    let edited = match format {
        FileFormat::Json => edit.json(&server),
        FileFormat::Toml => edit.toml(&server),
        FileFormat::Yaml => edit.yaml(added),
    };
    let edited = edited.ok_or(ReplaceRefusal::Unsafe)?;
    let after = read(&edited)?;
    let is_kept = |server: &&ImportedServer| !is_removed(server) && server.path != place;
    let kept = |servers: &[ImportedServer]| -> Vec<(Vec<String>, Map<String, Json>)> {
        servers.iter().filter(is_kept).map(|server| (server.path.clone(), server.entry.clone())).collect()
    };
    let is_complete = kept(&before) == kept(&after)
        && after.iter().any(|server| server.path == place && is_same(server, added))
        && !after.iter().any(|server| is_removed(server) && server.path != place);
    if is_complete { Ok(edited) } else { Err(ReplaceRefusal::Unsafe) }
}

/// Reports whether a server of the file is the one that is added.
fn is_same(server: &ImportedServer, added: AddedServer<'_>) -> bool {
    ["command", "args"].iter().all(|key| server.entry.get(*key) == added.entry.get(*key))
}

struct FileEdit<'a> {
    client: ExternalClient,
    text: &'a str,
    before: &'a [ImportedServer],
    removed: &'a [Vec<String>],
    /// Keys that lead to the added server.
    place: &'a [String],
}

impl FileEdit<'_> {
    fn json(&self, server: &Map<String, Json>) -> Option<String> {
        let mut text = self.text.to_owned();
        for path in self.removed {
            text = remove_setting(&text, &as_keys(path)).ok()?.text;
        }
        Some(set_setting(&text, &as_keys(self.place), &Json::Object(server.clone())).ok()?.text)
    }

    fn toml(&self, server: &Map<String, Json>) -> Option<String> {
        let mut document: DocumentMut = self.text.parse().ok()?;
        for path in self.removed {
            let (key, holder) = path.split_last()?;
            table_at(document.as_table_mut(), holder)?.remove(key)?;
        }
        let (key, holder) = self.place.split_last()?;
        table_at(document.as_table_mut(), holder)?.insert(key, Item::Table(toml_table(server)));
        Some(document.to_string())
    }

    /// Edits by lines: each server of a block mapping has lines of its own.
    fn yaml(&self, added: AddedServer<'_>) -> Option<String> {
        let mut lines: Vec<&str> = self.text.split_inclusive('\n').collect();
        let servers = self.before.iter().filter(|server| self.removed.contains(&server.path));
        let mut starts: Vec<usize> = servers.map(|server| server.place.line as usize - 1).collect();
        starts.sort_unstable();
        let first = *starts.first()?;
        let indent = indent_of(lines.get(first)?);
        for start in starts.into_iter().rev() {
            lines.drain(start..block_end(&lines, start)?);
        }
        let exported = export(self.client, &[(added.id.to_owned(), added.entry.clone())]).text;
        let own = exported.split_inclusive('\n').skip(self.place.len() - 1);
        let own: String =
            own.map(|line| format!("{}{}", " ".repeat(indent), line.strip_prefix("  ").unwrap_or(line))).collect();
        lines.insert(first, &own);
        Some(lines.concat())
    }
}

fn as_keys(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn table_at<'a>(root: &'a mut dyn TableLike, path: &[String]) -> Option<&'a mut dyn TableLike> {
    path.iter().try_fold(root, |table, key| table.get_mut(key)?.as_table_like_mut())
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Returns the line after the block that begins at a line: the first one that is not indented deeper.
fn block_end(lines: &[&str], start: usize) -> Option<usize> {
    let indent = indent_of(lines.get(start)?);
    let is_outside = |line: &&str| !line.trim().is_empty() && indent_of(line) <= indent;
    let mut end = lines[start + 1..].iter().position(is_outside).map_or(lines.len(), |at| start + 1 + at);
    // Blank lines before the next block are not part of this one.
    while end > start + 1 && lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gateway() -> Map<String, Json> {
        let Json::Object(entry) = json!({"command": "/bin/wharf", "args": ["serve"]}) else { unreachable!() };
        entry
    }

    /// Replaces all servers but those with these ids.
    fn replaced(client: ExternalClient, file: &str, text: &str, kept: &[&str]) -> Result<String, ReplaceRefusal> {
        let (file, entry) = (Path::new(file), gateway());
        let found = import(client, text, file, Path::new("")).unwrap();
        let removed: Vec<_> =
            found.into_iter().filter(|server| !kept.contains(&server.id.as_str())).map(|server| server.path).collect();
        replace_servers(client, text, file, &removed, AddedServer { id: "wharf", entry: &entry })
    }

    #[test]
    fn json_keeps_comments_and_unknown_keys() {
        let text = r#"{
  // my servers
  "mcpServers": {
    "a": {"command": "a"}, // goes
    /* stays */
    "b": {"command": "b", "unknown": [1]},
    "c d": {"command": "c"}
  },
  "theme": "dark" // really
}
"#;
        let edited = replaced(ExternalClient::Cursor, "mcp.json", text, &["b"]).unwrap();
        for part in
            ["// my servers", "/* stays */", r#""b": {"command": "b", "unknown": [1]}"#, "// really", "\"wharf\""]
        {
            assert!(edited.contains(part), "{part}: {edited}");
        }
        assert!(!edited.contains("\"a\"") && !edited.contains("c d"), "{edited}");
    }

    #[test]
    fn toml_keeps_comments_and_unknown_keys() {
        let text = "# top\nmodel = \"x\" # mine\n\n[mcp_servers.a]\ncommand = \"a\"\n\n[mcp_servers.a.env]\nK = \"v\"\n\n\
                    # about b\n[mcp_servers.b]\ncommand = \"b\"\nodd = 1\n\n[tui]\nx = 1\n";
        let edited = replaced(ExternalClient::Codex, "config.toml", text, &["b"]).unwrap();
        for part in ["# top", "# mine", "# about b", "odd = 1", "[tui]", "[mcp_servers.wharf]"] {
            assert!(edited.contains(part), "{part}: {edited}");
        }
        assert!(!edited.contains("mcp_servers.a"), "{edited}");
    }

    #[test]
    fn yaml_keeps_comments_and_unknown_keys() {
        let text = "# top\nextensions:\n  # built in\n  developer:\n    type: builtin\n    enabled: true\n\n  a:\n    type: stdio\n    \
                    cmd: a\n    enabled: true\n    envs:\n      K: v\n  b:\n    type: stdio\n    cmd: b\n    enabled: true\nGOOSE: x # mine\n";
        let edited = replaced(ExternalClient::Goose, "config.yaml", text, &["developer", "b"]).unwrap();
        for part in
            ["# top", "# built in", "developer:\n    type: builtin", "\n  wharf:\n", "\n  b:\n", "GOOSE: x # mine"]
        {
            assert!(edited.contains(part), "{part}: {edited}");
        }
        assert!(!edited.contains("\n  a:"), "{edited}");
        let flow = "extensions: {a: {type: stdio, cmd: a, enabled: true}}\n";
        assert_eq!(replaced(ExternalClient::Goose, "config.yaml", flow, &[]), Err(ReplaceRefusal::Unsafe));
    }

    #[test]
    fn another_server_of_the_same_key_is_kept() {
        let text = r#"{"mcpServers": {"a": {"command": "a"}, "wharf": {"command": "mine"}}}"#;
        let refused = replaced(ExternalClient::Cursor, "mcp.json", text, &["wharf"]);
        assert_eq!(refused, Err(ReplaceRefusal::Taken("wharf".to_owned())));
        let own = r#"{"mcpServers": {"a": {"command": "a"}, "wharf": {"command": "/bin/wharf", "args": ["serve"]}}}"#;
        assert!(!replaced(ExternalClient::Cursor, "mcp.json", own, &["wharf"]).unwrap().contains("\"a\""));
    }
}
