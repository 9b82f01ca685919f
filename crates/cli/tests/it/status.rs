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
fn every_server_has_a_row() {
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
fn named_servers_are_connected() {
    let home = mixed();
    let ran = home.run(["status", "lazy", "off", "--json"]);
    let states: Vec<Value> = ran.json()["items"].as_array().unwrap().iter().map(|item| item["state"].clone()).collect();
    assert_eq!((ran.code, states), (Some(0), vec![json!("ready"), json!("disabled")]));
    assert_eq!(home.run(["status", "unset"]).code, Some(2));
    let ran = home.run(["status", "lasy"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("did you mean `lazy`?"), "{ran:?}");
}

/// U10: one layout, with a summary, for whatever shows the state of servers.
#[test]
fn every_table_of_servers_has_the_same_columns_and_a_summary() {
    let home = mixed();
    for (args, rest, summary) in [
        (&["status"][..], "TOOLS REVISION SINCE", "8 servers: 1 ready, 1 idle, 1 disabled, 2 unapproved, 3 failed"),
        (&["status", "--brief"], "TOOLS REVISION SINCE", "8 servers: 2 ready, 1 disabled, 2 unapproved, 3 failed"),
        (&["list", "--probe"], "TOOLS REVISION SINCE", "8 servers: 2 ready, 1 disabled, 2 unapproved, 3 failed"),
        (&["list"], "COMMAND OR URL FILE", "8 servers: 4 enabled, 1 disabled, 2 unapproved, 1 broken"),
        (&["test", "demo"], "TOOLS REVISION TIME", "1 server: 1 ready"),
        (&["test", "boom"], "TOOLS REVISION TIME", "1 server: 1 failed"),
    ] {
        let ran = home.run(args);
        let lines: Vec<&str> = ran.stdout.lines().collect();
        let headings: Vec<&str> = lines[0].split_whitespace().collect();
        assert_eq!(headings.join(" "), format!("ID TRANSPORT SOURCE STATE {rest}"), "{args:?}: {}", ran.stdout);
        assert_eq!(lines.last(), Some(&summary), "{args:?}: {}", ran.stdout);
    }
}

#[test]
fn ok_in_json_agrees_with_the_exit_code() {
    let home = mixed();
    for (args, code) in [
        (&["status"][..], 3),
        (&["status", "lazy"], 0),
        (&["status", "theirs"], 5),
        (&["list"], 0),
        (&["list", "--probe"], 3),
        (&["test", "demo"], 0),
        (&["why", "boom"], 3),
        (&["get", "demo"], 0),
        (&["get", "nobody"], 2),
        (&["tools", "demo"], 0),
        (&["tools", "demo", "boom"], 3),
        (&["validate"], 2),
        (&["call", "demo", "echo", "text=hi"], 0),
        (&["call", "demo", "nothing"], 2),
    ] {
        let ran = home.run(args.iter().chain(&["--json"]));
        assert_eq!((ran.code, &ran.json()["ok"]), (Some(code), &json!(code == 0)), "{args:?}: {ran:?}");
    }
}

#[test]
fn empty_configuration_suggests_add() {
    let home = TestHome::with_servers(&json!({}));
    let ran = home.run(["status"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(ran.stderr.starts_with("no MCP servers configured\nhint: add one: wharf add"), "{ran:?}");
    assert_eq!(home.run(["status", "--json"]).json(), json!({"schema": 1, "ok": true, "items": []}));
}
