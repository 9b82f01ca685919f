//! `wharf status`: a row for every server, whatever may be the matter with it.

use serde_json::{Value, json};
use wharf_testkit::test_home::TestHome;

use crate::support::{boom, working};

fn lazy() -> Value {
    let mut server = working();
    server["lazy"] = json!(true);
    server
}

fn mixed() -> TestHome {
    let home = TestHome::with_servers(&json!({
        "demo": working(), "lazy": lazy(), "boom": boom(), "off": {"command": "x", "enabled": false},
        "broken": {"command": 7}, "unset": {"command": "x", "args": ["${NOT_THERE}"]},
    }));
    home.write("project/.mcp.json", r#"{"mcpServers": {"theirs": {"command": "x"}, "demo": {"command": "y"}}}"#);
    home
}

#[test]
fn every_server_is_a_row() {
    let home = mixed();
    let ran = home.run(["status", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let document = ran.json();
    let told: Vec<String> = document["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            format!(
                "{} {} {}",
                item["id"].as_str().unwrap(),
                item["source"].as_str().unwrap(),
                item["state"].as_str().unwrap()
            )
        })
        .collect();
    let expected = [
        "boom global failed",
        "broken global failed",
        "demo global ready",
        "demo project unapproved",
        "lazy global idle",
        "off global disabled",
        "theirs project unapproved",
        "unset global failed",
    ];
    assert_eq!(told, expected);
    let demo = &document["items"][2];
    assert_eq!((&demo["revision"], &demo["transport"]), (&json!("2026-07-28"), &json!("stdio")));
    assert!(demo["tools"].as_u64().unwrap() > 3 && demo["since"].is_string() && demo["last_error"].is_null(), "{demo}");
    assert!(document["items"][7]["last_error"]["message"].as_str().unwrap().contains("NOT_THERE"), "{document}");
    let ran = home.run(["status"]);
    assert_eq!(ran.code, Some(3));
    for part in [
        "ID ",
        "✓ ready",
        "‖ unapproved",
        "○ idle",
        "○ disabled",
        "✗ failed",
        "s ago",
        "hint: wharf why boom",
        "hint: wharf approve theirs",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is missing in {}", ran.stdout);
    }
}

#[test]
fn those_that_are_named_are_connected() {
    let home = mixed();
    let ran = home.run(["status", "lazy", "off", "--json"]);
    let states: Vec<Value> = ran.json()["items"].as_array().unwrap().iter().map(|item| item["state"].clone()).collect();
    assert_eq!((ran.code, states), (Some(0), vec![json!("ready"), json!("disabled")]));
    assert_eq!(home.run(["status", "unset"]).code, Some(2));
    let ran = home.run(["status", "lasy"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("did you mean `lazy`?"), "{ran:?}");
}

#[test]
fn one_line_each() {
    let home = mixed();
    let ran = home.run(["status", "--brief"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 7, "{}", ran.stdout);
    assert_eq!(lines[0], "boom: sh … - ✗ failed — exited with code 3: boom: missing API key");
    assert!(lines[2].starts_with("demo: ") && lines[2].contains(" … - ✓ connected ("), "{}", lines[2]);
    assert!(
        lines[4].ends_with("○ disabled") && lines[5].ends_with("‖ not approved (wharf approve theirs)"),
        "{lines:?}"
    );
}

#[test]
fn there_may_be_none() {
    let home = TestHome::with_servers(&json!({}));
    let ran = home.run(["status"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(ran.stderr.starts_with("no MCP servers configured\nhint: add one: wharf add"), "{ran:?}");
    assert_eq!(home.run(["status", "--json"]).json(), json!({"schema": 1, "items": []}));
}
