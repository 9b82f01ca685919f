//! `list` and `get`.

use serde_json::json;
use wharf_testkit::test_home::{PROJECT_CONFIG, SHARED_CONFIG, TestHome, USER_CONFIG};

use crate::support::assert_harmless;

#[test]
fn empty_list_suggests_add() {
    let ran = TestHome::new().run_ok(&["list"]);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.starts_with("No MCP servers configured; add one: wharf add "), "{ran:?}");
    assert_eq!(
        TestHome::new().run_ok(&["ls", "--json"]).json(),
        json!({"schema": 1, "ok": true, "items": [], "problems": []})
    );
}

fn several() -> TestHome {
    let home = TestHome::new();
    home.write("home/.mcp.json", r#"{"mcpServers": {"two": {"command": "lower"}}}"#);
    home.write(
        USER_CONFIG,
        "{\"mcpServers\": {\n\"one\": {\"url\": \"https://h/mcp\"},\n\"two\": {\"command\": \"npx\", \"args\": [\"-y\", \"x\"]},\n\
         \"off\": {\"command\": \"a\", \"enabled\": false},\n\"bad\": {\"args\": []}}}",
    );
    home.write(SHARED_CONFIG, r#"{"mcpServers": {"one": {"command": "evil"}}}"#);
    home.write(PROJECT_CONFIG, r#"{"mcpServers": {"new": {"url": "http://h/", "type": "sse"}}}"#);
    home
}

#[test]
fn every_entry_has_a_row() {
    let ran = several().run_ok(&["list"]);
    let rows: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let user = "~/.config/wharf/config.json";
    let expected = [
        "ID TRANSPORT SOURCE STATE COMMAND OR URL FILE".to_owned(),
        format!("bad ? global ✗ broken {user}:5"),
        "new sse project ‖ unapproved http://h/ .wharf/config.json:1".to_owned(),
        format!("off stdio global ○ disabled a {user}:4"),
        format!("one http global ● enabled https://h/mcp {user}:2"),
        "· one stdio project ‖ unapproved evil .mcp.json:1".to_owned(),
        format!("two stdio global ● enabled npx -y x {user}:3"),
        "· two stdio global · replaced lower ~/.mcp.json:1".to_owned(),
        "7 servers: 2 enabled, 1 disabled, 2 unapproved, 1 replaced, 1 broken".to_owned(),
    ];
    assert_eq!(rows.iter().map(|row| row.join(" ")).collect::<Vec<_>>(), expected);
    assert!(ran.stderr.contains(":5:8: `bad` has neither `command` nor `url`; set `command`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("wharf approve new one"), "{}", ran.stderr);
}

#[test]
fn scope_filters_the_list() {
    for (scope, expected) in
        [("project", "new one"), ("global", "bad off one two two"), ("effective", "bad new off one one two two")]
    {
        let document = several().run_ok(&["list", "--json", "--scope", scope]).json();
        let ids: Vec<&str> =
            document["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
        assert_eq!(ids.join(" "), expected, "{scope}");
    }
}

#[test]
fn list_json_has_the_documented_shape() {
    let home = TestHome::new().with_env("TOKEN", "hush");
    let entry = r#"{"command": "npx", "args": ["--api-key", "hush"], "env": {"A": "hush", "T": "${TOKEN}"}, "timeout": 9000, "odd": "hush"}"#;
    let file = home.write(USER_CONFIG, &format!("{{\"mcpServers\": {{\"x\": {entry}}}}}"));
    let mut item = home.run_ok(&["list", "--json"]).json()["items"][0].clone();
    let problems = item.as_object_mut().unwrap().remove("problems").unwrap();
    assert_eq!(
        (&problems[0]["code"], &problems[0]["severity"], &problems[0]["line"]),
        (&json!("unknown_key"), &json!("warning"), &json!(1))
    );
    let expected = json!({
        "id": "x", "transport": "stdio", "source": "global", "file": file, "line": 1, "state": "enabled",
        "enabled": true, "approved": true, "trust": false, "shadowed": false,
        "command": "npx", "args": ["--api-key", "***"], "url": null, "env": {"A": "***", "T": "${TOKEN}"},
        "headers": null, "timeout": 9000, "unknown": {"odd": "***"},
        "references": [{"kind": "variable", "name": "TOKEN", "set": true}],
    });
    assert_eq!(item, expected);
    let item = home.run_ok(&["list", "--json", "--reveal"]).json()["items"][0].clone();
    assert_eq!((&item["args"][1], &item["env"]["A"]), (&json!("hush"), &json!("hush")));
    assert_eq!(item["references"][0]["value"], "hush");
}

#[test]
fn get_shows_every_field() {
    let home = TestHome::new().with_env("TOKEN", "hush");
    home.write("home/.mcp.json", r#"{"mcpServers": {"x": {"command": "lower"}}}"#);
    let entry = r#"{"command": "npx", "args": ["-y", " odd "], "env": {"A": "hush", "N": "${NONE}", "T": "${TOKEN}"}, "trust": true, "timeout": 5}"#;
    home.write(USER_CONFIG, &format!("{{\"mcpServers\": {{\"x\": {entry}}}}}"));
    let expected = "\
x
  Scope:       global (your own)
  State:       enabled
  File:        ~/.config/wharf/config.json:1
  Type:        stdio
  Command:     npx
  Args:        -y
               \" odd \"
  Env:         A=***
               N=${NONE} (not set)
               T=${TOKEN} (set)
  Settings:    trust: true
               timeout: 5
  Replaces:    ~/.mcp.json:1 (global)
  Problem:     ";
    let ran = home.run_ok(&["get", "x"]);
    assert!(ran.stdout.starts_with(expected), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("5 ms is probably too short; write 5000 for 5 s\n\nTo remove: wharf remove x\n"),
        "{}",
        ran.stdout
    );
    assert!(home.run_ok(&["get", "x", "--reveal"]).stdout.contains("T=${TOKEN} (set: hush)"));
    let document = home.run_ok(&["get", "x", "--json"]).json();
    assert_eq!((&document["schema"], &document["id"], &document["env"]["A"]), (&json!(1), &json!("x"), &json!("***")));
    assert_eq!(document["others"][0]["command"], "lower");
}

#[test]
fn unknown_server_suggests_a_similar_name() {
    let ran = several().run(["get", "twoo"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("error: no server named `twoo`.\n  hint: did you mean `two`"), "{}", ran.stderr);
}

#[test]
fn control_characters_in_config_are_escaped() {
    let home = TestHome::new();
    home.write(
        SHARED_CONFIG,
        r#"{"mcpServers": {"x": {"command": "a\u001b[2J", "args": ["\u202ereverse"], "k\u0007": 1}}}"#,
    );
    for args in [&["list"][..], &["get", "x"], &["validate"]] {
        let ran = home.run(args);
        assert_harmless(&ran.stdout);
        assert_harmless(&ran.stderr);
        assert!(args[0] == "validate" || ran.stdout.contains(r"a\u{1b}[2J"), "{ran:?}");
    }
}
