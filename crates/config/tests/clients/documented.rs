//! The examples of the clients' documentations: each yields exactly these entries and exactly these notes.
//!
//! `fixtures/NAME.EXT` is what a user would have, `fixtures/NAME.expected.json` what becomes of it.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use wharf_config::clients::{ExternalClient, ImportedServer, NoteSeverity, import};
use wharf_config::tree::ParseFailure;

use crate::round_trip::{check_kept, there_and_back};

const PROJECT: &str = "/home/me/project";

const FILES: [(ExternalClient, &str); 12] = [
    (ExternalClient::ClaudeCode, "claude-code.json"),
    (ExternalClient::ClaudeCode, "claude-code-user.json"),
    (ExternalClient::ClaudeDesktop, "claude-desktop.json"),
    (ExternalClient::Cursor, "cursor.json"),
    (ExternalClient::VsCode, "vs-code.json"),
    (ExternalClient::Codex, "codex.toml"),
    (ExternalClient::Gemini, "gemini.json"),
    (ExternalClient::Opencode, "opencode.jsonc"),
    (ExternalClient::Opencode, "opencode-v2.jsonc"),
    (ExternalClient::Goose, "goose.yaml"),
    (ExternalClient::Zed, "zed.json"),
    (ExternalClient::Windsurf, "windsurf.json"),
];

#[test]
fn documented_examples_are_imported() {
    for (client, file) in FILES {
        let imported = from_file(client, file);
        let expected = fixture(&format!("{}.expected.json", file.split('.').next().unwrap()));
        let expected: Value = serde_json::from_str(&expected).unwrap();
        let shown = summary(&imported);
        assert_eq!(shown, expected, "{file}:\n{}", serde_json::to_string_pretty(&shown).unwrap());
    }
}

/// What was imported can be exported, the client's own reader takes it, and what is not the same is said.
#[test]
fn imported_examples_can_be_exported() {
    for (client, file) in FILES {
        let carried = from_file(client, file).into_iter().filter(ImportedServer::has_entry);
        let servers: Vec<_> = carried.map(|server| (server.id, server.entry)).collect();
        assert!(!servers.is_empty(), "{file}");
        for other in ExternalClient::ALL {
            let (back, notes) = there_and_back(other, &servers);
            check_kept(&servers, &back, &notes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever becomes of a file, it is read or refused.
    #[test]
    fn corrupted_files_are_imported_or_rejected(
        (client, file) in prop::sample::select(FILES.to_vec()),
        spoil in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
    ) {
        let mut characters: Vec<char> = fixture(file).chars().collect();
        for (from, to) in spoil {
            let (from, to) = (from.index(characters.len()), to.index(characters.len()));
            characters.swap(from, to);
            characters.remove(from);
        }
        let text: String = characters.into_iter().collect();
        let imported = import(client, &text, Path::new(file), Path::new(PROJECT)).unwrap_or_default();
        for server in imported {
            prop_assert!((1..=64).contains(&server.id.len()), "{}", server.id);
            prop_assert!(server.has_entry() || !server.notes.is_empty(), "{text}");
        }
    }
}

#[test]
fn server_names_are_sanitized() {
    let long = "x".repeat(70);
    let text = json!({ "mcpServers": {
        "a b": { "command": "x" }, "a.b": { "command": "x" }, "": { "command": "x" }, &long: { "command": "x" },
        "é\u{1b}[31m": { "command": "x" }, "fine_1-X": { "command": "x" },
    }});
    let imported = read(ExternalClient::Cursor, &text.to_string()).unwrap();
    let mut names: Vec<_> = imported.iter().map(|server| (server.id.as_str(), server.notes.len())).collect();
    names.sort_unstable();
    let cut = "x".repeat(64);
    assert_eq!(names, [("---31m", 1), ("a-b", 1), ("a-b-2", 1), ("fine_1-X", 0), ("server", 1), (cut.as_str(), 1)]);
    assert!(imported.iter().flat_map(|server| &server.notes).all(|note| !note.text.contains('\u{1b}')));
}

#[test]
fn invalid_server_list_is_an_error() {
    for (client, text, expected) in [
        (ExternalClient::Cursor, "{\"mcpServers\": []}", Err("1:16: `mcpServers` is a list, not an object")),
        (ExternalClient::Cursor, "{\"mcpServers\": {}", Err("1:1: unterminated object")),
        (ExternalClient::Cursor, "{\"mcpServers\": null}", Ok(0)),
        (ExternalClient::Cursor, "{\"editor\": {}}", Ok(0)),
        (ExternalClient::Zed, "[1]", Ok(0)),
        (ExternalClient::Goose, "", Ok(0)),
    ] {
        let file = if client == ExternalClient::Goose { "a.yaml" } else { "a.json" };
        let imported = import(client, text, Path::new(file), Path::new(PROJECT));
        let imported = imported.map(|servers| servers.len()).map_err(|error| format!("{}: {error}", error.at));
        assert_eq!(imported, expected.map_err(str::to_owned), "{text}");
    }
}

#[test]
fn invalid_entries_have_notes() {
    for (entry, expected) in [
        ("5", "lost: skipped: it is a number, not an object"),
        ("{}", "lost: skipped: it has neither a command nor a URL"),
        ("{\"command\": [\"a\"]}", "lost: skipped `command`: it is a list, not a string"),
        ("{\"command\": \"a\", \"args\": \"b\"}", "lost: skipped `args`: it is a string, not a list of strings"),
        ("{\"command\": \"a\", \"env\": {\"A\": {}}}", "lost: skipped `env.A`: it is an object, not a string"),
        ("{\"command\": \"a\", \"color\": \"red\"}", "lost: skipped `color`: unknown key"),
        ("{\"url\": \"x\", \"oauth\": {\"a\\u001b\": 1}}", "lost: skipped `oauth.a\\u{1b}`: unknown key"),
        ("{\"command\": \"a\", \"timeout\": -5}", "lost: skipped `timeout`: it is a number, not a time"),
        ("{\"type\": \"ws\", \"url\": \"x\"}", "lost: skipped: servers of type `ws` are not supported"),
    ] {
        let imported = read(ExternalClient::ClaudeCode, &format!("{{\"mcpServers\": {{\"x\": {entry}}}}}")).unwrap();
        let notes = summary(&imported)["x"]["notes"].clone();
        let first = notes[0].as_str().unwrap().split(" | ").next().unwrap();
        assert_eq!(first, expected, "{entry}");
    }
}

#[test]
fn last_duplicate_takes_effect() {
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\", \"command\": \"z\"}}}";
    let imported = read(ExternalClient::Cursor, text).unwrap();
    assert_eq!(imported.len(), 1);
    assert_eq!(imported[0].entry["command"], "z");
    assert_eq!(imported[0].place.to_string(), "2:1");
    assert_eq!(imported[0].notes[0].text, "overrides another server of the same name at 1:17");
}

fn read(client: ExternalClient, text: &str) -> Result<Vec<ImportedServer>, ParseFailure> {
    import(client, text, Path::new("file.json"), Path::new(PROJECT))
}

fn from_file(client: ExternalClient, file: &str) -> Vec<ImportedServer> {
    let imported = import(client, &fixture(file), Path::new(file), Path::new(PROJECT));
    imported.unwrap_or_else(|error| panic!("{file}:{}: {error}", error.at))
}

fn fixture(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/fixtures").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Servers by id, each with its entry and, as `severity: text | fix`, its notes.
fn summary(imported: &[ImportedServer]) -> Value {
    let server = |server: &ImportedServer| {
        let notes = server.notes.iter().map(|note| {
            let severity = match note.severity {
                NoteSeverity::Hint => "hint",
                NoteSeverity::Changed => "changed",
                NoteSeverity::Lost => "lost",
            };
            let fix = note.fix.as_ref().map(|fix| format!(" | {fix}")).unwrap_or_default();
            format!("{severity}: {}{fix}", note.text)
        });
        let notes: Vec<_> = notes.collect();
        (server.id.clone(), json!({ "at": server.place.to_string(), "entry": server.entry, "notes": notes }))
    };
    Value::Object(imported.iter().map(server).collect::<Map<_, _>>())
}
