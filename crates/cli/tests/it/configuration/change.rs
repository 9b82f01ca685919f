//! `remove`, `enable`, `disable`.

use serde_json::json;

use super::world::{PROJECT, SHARED, USER, World};

const ONE: &str = "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"a\"\n    }\n  }\n}\n";

fn state(world: &World) -> String {
    world.fine(&["list", "--json"]).json()["items"][0]["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_removed_server_is_gone_and_comes_back() {
    let world = World::new();
    world.write(USER, ONE);
    let ran = world.fine(&["remove", "x"]);
    let undo = "wharf add-json x '{\"command\":\"a\"}' --scope global";
    assert_eq!(ran.stderr, format!("Removed x from ~/.config/wharf/config.json\n  undo: {undo}\n"));
    assert_eq!(world.fine(&["list", "--json"]).json()["items"], json!([]));
    world.fine(&["add-json", "x", "{\"command\":\"a\"}", "--scope", "global"]);
    assert_eq!(world.read(USER), ONE);
}

#[test]
fn the_projects_goes_first_and_what_counts_then_is_told() {
    let world = World::new();
    world.write(USER, ONE);
    world.write(SHARED, ONE);
    let document = world.fine(&["remove", "x", "--json"]).json();
    assert_eq!((&document["file"], &document["action"]), (&json!(world.path(SHARED)), &json!("removed")));
    assert_eq!(document["counts_now"], format!("{}:3:5", world.path(USER).display()));
    world.write(PROJECT, ONE);
    let ran = world.fine(&["rm", "x"]);
    assert!(ran.stderr.contains("`x` of ~/.config/wharf/config.json:3 (global) is in effect now"), "{}", ran.stderr);
    assert_eq!(world.run(&["remove", "x", "--scope", "project"]).code, Some(2));
    world.fine(&["remove", "x", "--scope", "global"]);
}

#[test]
fn secrets_are_not_repeated_to_undo_a_removal() {
    let world = World::new();
    world.write(USER, r#"{"mcpServers": {"x": {"command": "a", "env": {"A": "hush"}}}}"#);
    let ran = world.fine(&["remove", "x"]);
    assert!(ran.stderr.contains("\"A\":\"***\"") && !ran.stderr.contains("hush"), "{}", ran.stderr);
}

#[test]
fn a_server_is_switched_where_it_stands() {
    let world = World::new();
    world.write(USER, ONE);
    let ran = world.fine(&["disable", "x"]);
    assert_eq!(ran.stderr, "Disabled x in ~/.config/wharf/config.json\n  undo: wharf enable x\n");
    assert_eq!(state(&world), "disabled");
    assert_eq!(world.fine(&["disable", "x"]).stderr, "x is already disabled\n");
    let document = world.fine(&["enable", "x", "--json"]).json();
    assert_eq!((&document["action"], &document["files"]), (&json!("enabled"), &json!([world.path(USER)])));
    assert_eq!(state(&world), "enabled");
}

#[test]
fn a_layer_can_switch_a_lower_one_off_and_enable_finds_it() {
    let world = World::new();
    world.write(USER, ONE);
    world.fine(&["add-json", "x", "{\"enabled\": false}"]);
    assert_eq!(state(&world), "disabled");
    let ran = world.fine(&["enable", "x"]);
    assert!(ran.stderr.starts_with("Enabled x in .wharf/config.json\n"), "{}", ran.stderr);
    assert_eq!((state(&world).as_str(), world.read(USER).as_str()), ("enabled", ONE));
}

#[test]
fn a_file_of_a_flag_is_edited_and_a_variable_is_not() {
    let world = World::new();
    let file = world.write("flag.json", ONE).display().to_string();
    world.fine(&["disable", "x", "--config", &file]);
    assert!(world.read("flag.json").contains("\"enabled\": false"));
    let yaml = world.write("flag.yaml", "mcpServers: {x: {command: a}}\n").display().to_string();
    let ran = world.run(&["disable", "x", "--config", &yaml]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("is YAML, which Wharf can read but not edit") && ran.stderr.contains("edit it manually"),
        "{}",
        ran.stderr
    );
    let world = World::new().set("WHARF_MCP_SERVERS", r#"{"x": {"command": "a"}}"#);
    for command in ["remove", "enable", "disable"] {
        let ran = world.run(&[command, "x"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("it is defined by the variable WHARF_MCP_SERVERS"), "{}", ran.stderr);
    }
}

#[test]
fn a_file_that_cannot_be_changed_is_told_with_a_way_out() {
    let world = World::new();
    world.write(SHARED, r#"{"mcpServers": {"x": {"command": "a"}}}"#);
    std::fs::hard_link(world.path(SHARED), world.path("home/project/other")).unwrap();
    let ran = world.run(&["disable", "x"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("wharf add-json x '{\"enabled\": false}'"), "{}", ran.stderr);
}

/// What only switches a server off is taken back without touching the server.
#[test]
fn a_switch_is_removed_and_not_what_it_switches() {
    let world = World::new();
    world.write(USER, r#"{"mcpServers": {"github": {"command": "a", "env": {"TOKEN": "hush"}}}}"#);
    let ran = world.fine(&["add-json", "github", r#"{"enabled": false}"#]);
    assert!(ran.stderr.contains("undo: wharf enable github") && !ran.stderr.contains("takes precedence"), "{ran:?}");
    let ran = world.fine(&["remove", "github"]);
    assert!(ran.stderr.contains("Removed the entry that disabled github"), "{ran:?}");
    assert!(world.read(USER).contains("hush"));
    assert_eq!(world.fine(&["list", "--json"]).json()["items"][0]["state"], "enabled");
}

/// A flag of ours behind the command is hardly meant for the server.
#[test]
fn a_flag_behind_the_command_is_not_swallowed() {
    let world = World::new();
    for words in [&["--scope", "global"][..], &["-e", "TOKEN=x"], &["--trust"]] {
        let ran = world.run(&[&["add", "a", "npx", "pkg"], words].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("would be passed to the server as an argument"), "{ran:?}");
    }
    world.fine(&["add", "a", "--", "npx", "pkg", "--scope", "global"]);
    assert!(world.read(PROJECT).contains(r#""--scope""#));
}
