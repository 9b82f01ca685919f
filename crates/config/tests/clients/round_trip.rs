//! What is written for a client and read again is what it was, or a note says that it is not.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use wharf_config::clients::{ConversionNote, ExternalClient, ImportedServer, export, import};

type Entry = Map<String, Value>;

/// Everything a client can say comes back, without a word about it.
#[test]
fn supported_entries_round_trip_without_notes() {
    let stdio = json!({
        "command": "npx", "args": ["-y", "server", "a b", "--no", "$HOME is text", "\"q\" 'q' \\ # : [x"],
    });
    let remote = json!({ "url": "https://example.com/mcp?a=b", "headers": { "X-Key": "k: v # é" } });
    for (client, server) in [
        (ExternalClient::ClaudeCode, with(&stdio, json!({ "env": { "A": "${B}", "C": "${D:-e}" }, "timeout": 5000 }))),
        (
            ExternalClient::ClaudeCode,
            with(&remote, json!({ "type": "sse", "oauth": { "client_id": "c", "scope": "a b" } })),
        ),
        (ExternalClient::ClaudeDesktop, with(&stdio, json!({ "env": { "A": "$${B}", "N": "no" } }))),
        (
            ExternalClient::Cursor,
            with(&stdio, json!({ "env": { "A": "${B}" }, "envFile": ".env", "cwd": "/x", "enabled": false })),
        ),
        (
            ExternalClient::Cursor,
            with(&remote, json!({ "oauth": { "client_id": "${I}", "client_secret": "${S}", "scope": "a b" } })),
        ),
        (
            ExternalClient::VsCode,
            with(&stdio, json!({ "env": { "A": "Bearer ${B}" }, "envFile": ".env", "cwd": "/x" })),
        ),
        (ExternalClient::VsCode, with(&remote, json!({ "type": "http", "oauth": { "client_id": "c" } }))),
        (
            ExternalClient::Codex,
            with(
                &stdio,
                json!({
                    "env": { "A": "${A}", "B": "b" }, "cwd": "/x", "enabled": false, "timeout": 1500,
                    "startupTimeoutMs": 20000, "includeTools": ["a", "b"], "excludeTools": ["c"],
                }),
            ),
        ),
        (
            ExternalClient::Codex,
            json!({
                "url": "https://example.com/mcp", "type": "http", "oauth": { "client_id": "c", "scope": "a b" },
                "headers": { "Authorization": "Bearer ${T}", "X-A": "${A}", "X-B": "b" },
            }),
        ),
        (
            ExternalClient::Gemini,
            json!({
                "command": "npx", "args": ["x"], "env": { "A": "${B:-}" }, "cwd": "/x", "timeout": 1, "includeTools": ["a"],
            }),
        ),
        (
            ExternalClient::Gemini,
            with(
                &remote,
                json!({
                    "type": "sse", "excludeTools": ["c"],
                    "oauth": { "client_id": "c", "client_secret": "s", "authorization_url": "https://a/", "token_url":
                        "https://t/", "registration_url": "https://r/", "scope": "a b" },
                }),
            ),
        ),
        (ExternalClient::Gemini, with(&remote, json!({ "type": "http" }))),
        (
            ExternalClient::Opencode,
            with(&stdio, json!({ "env": { "A": "x${B}" }, "cwd": "/x", "enabled": false, "timeout": 9 })),
        ),
        (
            ExternalClient::Opencode,
            with(&remote, json!({ "oauth": { "client_id": "c", "client_secret": "s", "scope": "a" } })),
        ),
        (
            ExternalClient::Goose,
            with(&stdio, json!({ "env": { "B": "on", "C": "12" }, "timeout": 300000, "includeTools": ["a"] })),
        ),
        (
            ExternalClient::Goose,
            with(&remote, json!({ "type": "http", "headers": { "A": "Bearer ${T}" }, "enabled": false })),
        ),
        (ExternalClient::Goose, with(&remote, json!({ "type": "sse" }))),
        (ExternalClient::Zed, with(&stdio, json!({ "env": { "A": "b" }, "enabled": false }))),
        (ExternalClient::Zed, remote.clone()),
        (ExternalClient::Windsurf, with(&stdio, json!({ "env": { "A": "${B}" }, "excludeTools": ["x"] }))),
        (ExternalClient::Windsurf, with(&remote, json!({ "enabled": false }))),
    ] {
        let entry = server.as_object().unwrap().clone();
        let (back, notes) = there_and_back(client, &[("a_1-B".to_owned(), entry.clone())]);
        assert_eq!(back[0].entry, entry, "{client:?}");
        assert_eq!(notes, [], "{client:?}");
    }
}

fn with(entry: &Value, more: Value) -> Value {
    let mut entry = entry.clone();
    for (key, value) in more.as_object().into_iter().flatten() {
        entry[key] = value.clone();
    }
    entry
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_lossy_conversion_has_a_note(client in prop::sample::select(ExternalClient::ALL.to_vec()), servers in servers()) {
        let (back, notes) = there_and_back(client, &servers);
        check_kept(&servers, &back, &notes);
        for note in &notes {
            let said = format!("{} {}", note.text, note.fix.as_deref().unwrap_or_default());
            prop_assert!(!said.contains("hunter2"), "{said}");
            prop_assert!(!said.chars().any(|character| character.is_control()), "{said:?}");
        }
    }
}

/// Writes servers for a client, and reads what was written.
pub fn there_and_back(
    client: ExternalClient,
    servers: &[(String, Entry)],
) -> (Vec<ImportedServer>, Vec<ConversionNote>) {
    let exported = export(client, servers);
    let back = import(client, &exported.text, Path::new("file"), Path::new("/project"));
    let back = back.unwrap_or_else(|error| panic!("{client:?} {}: {error}\n{}", error.at, exported.text));
    let notes = exported.notes.into_iter().chain(back.iter().flat_map(|server| server.notes.clone())).collect();
    (back, notes)
}

/// Checks that whatever did not come back as it was is spoken of.
pub fn check_kept(servers: &[(String, Entry)], back: &[ImportedServer], notes: &[ConversionNote]) {
    let spoken_of = |name: &str| notes.iter().any(|note| note.text.contains(&format!("`{name}`")));
    for (id, entry) in servers {
        let Some(server) = back.iter().find(|server| server.id == *id) else {
            let is_said = |note: &ConversionNote| note.text.starts_with(&format!("`{id}`: skipped: "));
            assert!(notes.iter().any(is_said), "{id} is gone: {notes:?}");
            continue;
        };
        let (before, after) = (leaves(entry), leaves(&server.entry));
        for (name, value) in &before {
            let object = name.split_once('.').map_or(name.as_str(), |(object, _)| object);
            let is_kept = after.iter().any(|leaf| leaf == &(name.clone(), value.clone()));
            assert!(is_kept || spoken_of(name) || spoken_of(object), "{name} of {entry:?} in {after:?}: {notes:?}");
        }
        let is_new = |name: &String| name != "type" && !before.iter().any(|(old, _)| old == name);
        assert_eq!(after.iter().find(|(name, _)| is_new(name)), None, "{entry:?}");
    }
}

/// Every value by its path.
fn leaves(entry: &Entry) -> Vec<(String, Value)> {
    let mut leaves = Vec::new();
    for (key, value) in entry {
        match value {
            Value::Object(members) => {
                leaves.extend(members.iter().map(|(inner, value)| (format!("{key}.{inner}"), value.clone())));
            }
            value => leaves.push((key.clone(), value.clone())),
        }
    }
    leaves
}

fn servers() -> impl Strategy<Value = Vec<(String, Entry)>> {
    let servers = prop::collection::btree_map("[a-zA-Z][a-zA-Z0-9_-]{0,8}", entry(), 0..4);
    servers.prop_map(|servers| servers.into_iter().collect())
}

fn entry() -> impl Strategy<Value = Entry> {
    let stdio = members(vec![
        ("command", text().boxed(), 1.0),
        ("args", texts().boxed(), 0.7),
        ("env", pairs().boxed(), 0.7),
        ("cwd", text().boxed(), 0.3),
        ("envFile", text().boxed(), 0.2),
    ]);
    let remote = members(vec![
        ("url", text().boxed(), 1.0),
        ("type", prop::sample::select(vec!["http", "sse"]).prop_map(Value::from).boxed(), 0.5),
        ("headers", pairs().boxed(), 0.7),
        ("oauth", oauth().boxed(), 0.4),
    ]);
    let rest = members(vec![
        ("enabled", Just(Value::Bool(false)).boxed(), 0.2),
        ("timeout", (0..1_000_000u64).prop_map(Value::from).boxed(), 0.3),
        ("startupTimeoutMs", (0..1_000_000u64).prop_map(Value::from).boxed(), 0.2),
        ("trust", Just(Value::Bool(true)).boxed(), 0.2),
        ("includeTools", words().boxed(), 0.2),
        ("excludeTools", words().boxed(), 0.2),
        ("lazy", Just(Value::Bool(true)).boxed(), 0.1),
        ("maxConcurrent", (1..9u64).prop_map(Value::from).boxed(), 0.1),
    ]);
    (prop_oneof![stdio, remote], rest).prop_map(|(mut entry, rest)| {
        entry.extend(rest);
        entry
    })
}

/// An object of which each member is there with a certain likelihood.
fn members(members: Vec<(&'static str, BoxedStrategy<Value>, f64)>) -> BoxedStrategy<Entry> {
    let member = |(key, value, likely): (&'static str, BoxedStrategy<Value>, f64)| {
        let value =
            if likely < 1.0 { prop::option::weighted(likely, value).boxed() } else { value.prop_map(Some).boxed() };
        value.prop_map(move |value| value.map(|value| (key.to_owned(), value)))
    };
    let members: Vec<_> = members.into_iter().map(member).collect();
    members.prop_map(|members| members.into_iter().flatten().collect()).boxed()
}

fn oauth() -> impl Strategy<Value = Value> {
    let scope = prop::collection::vec("[a-z:/]{1,5}", 1..4).prop_map(|scopes| Value::from(scopes.join(" ")));
    let fields = vec![
        ("client_id", text().boxed(), 0.8),
        ("client_secret", text().boxed(), 0.5),
        ("token_url", text().boxed(), 0.3),
        ("scope", scope.boxed(), 0.5),
    ];
    members(fields).prop_filter("an empty object says nothing", |members| !members.is_empty()).prop_map(Value::Object)
}

fn pairs() -> impl Strategy<Value = Value> {
    let name = prop_oneof!["[A-Z]{1,3}", Just("Authorization".to_owned())];
    prop::collection::btree_map(name, text(), 1..4).prop_map(|pairs| pairs.into_iter().collect())
}

fn texts() -> impl Strategy<Value = Value> {
    prop::collection::vec(text(), 1..4).prop_map(Value::Array)
}

fn words() -> impl Strategy<Value = Value> {
    prop::collection::vec("[a-z_*]{1,6}", 0..3).prop_map(Value::from)
}

/// A text of ours, in which references stand where they may and everything else is escaped.
fn text() -> impl Strategy<Value = Value> {
    let literals =
        vec!["hunter2", "$", "{", "}", "${", "no", "1", " ", "é\n", "\u{202e}\u{7}", "{env:A}", "${env:A}", ":"];
    let references = vec!["${A}", "${BC}", "${A:-hunter2}", "${A:-}", "${secret:s}"];
    let piece = prop_oneof![
        3 => prop::sample::select(literals).prop_map(|literal| (literal, false)),
        2 => prop::sample::select(references).prop_map(|reference| (reference, true)),
        1 => Just(("Bearer ", false)),
    ];
    prop::collection::vec(piece, 1..4).prop_map(|pieces| Value::from(written(&pieces)))
}

fn written(pieces: &[(&str, bool)]) -> String {
    let (mut text, mut literal) = (String::new(), String::new());
    for (piece, is_reference) in pieces {
        if !is_reference {
            literal.push_str(piece);
            continue;
        }
        text.push_str(&literal.replace("${", "$${"));
        literal.clear();
        text.push_str(if text.ends_with('$') { "-" } else { "" });
        text.push_str(piece);
    }
    text + &literal.replace("${", "$${")
}
