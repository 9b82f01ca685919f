//! `remove`, `enable`, `disable`.

use serde_json::json;
use wharf_testkit::test_home::{PROJECT_CONFIG, SHARED_CONFIG, TestHome, USER_CONFIG};

const ONE: &str = "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"a\"\n    }\n  }\n}\n";

fn state(home: &TestHome) -> String {
    home.run_ok(&["list", "--json"]).json()["items"][0]["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_removed_server_is_gone_and_comes_back() {
    let home = TestHome::new();
    home.write(USER_CONFIG, ONE);
    let ran = home.run_ok(&["remove", "x"]);
    let undo = "wharf add-json x '{\"command\":\"a\"}' --scope global";
    assert_eq!(ran.stderr, format!("Removed x from ~/.config/wharf/config.json\n  undo: {undo}\n"));
    assert_eq!(home.run_ok(&["list", "--json"]).json()["items"], json!([]));
    home.run_ok(&["add-json", "x", "{\"command\":\"a\"}", "--scope", "global"]);
    assert_eq!(home.read(USER_CONFIG), ONE);
}

#[test]
fn the_projects_goes_first_and_what_counts_then_is_told() {
    let home = TestHome::new();
    home.write(USER_CONFIG, ONE);
    home.write(SHARED_CONFIG, ONE);
    let document = home.run_ok(&["remove", "x", "--json"]).json();
    assert_eq!((&document["file"], &document["action"]), (&json!(home.path(SHARED_CONFIG)), &json!("removed")));
    assert_eq!(document["counts_now"], format!("{}:3:5", home.path(USER_CONFIG).display()));
    home.write(PROJECT_CONFIG, ONE);
    let ran = home.run_ok(&["rm", "x"]);
    assert!(ran.stderr.contains("`x` of ~/.config/wharf/config.json:3 (global) is in effect now"), "{}", ran.stderr);
    assert_eq!(home.run(["remove", "x", "--scope", "project"]).code, Some(2));
    home.run_ok(&["remove", "x", "--scope", "global"]);
}

#[test]
fn secrets_are_not_repeated_to_undo_a_removal() {
    let home = TestHome::new();
    home.write(USER_CONFIG, r#"{"mcpServers": {"x": {"command": "a", "env": {"A": "hush"}}}}"#);
    let ran = home.run_ok(&["remove", "x"]);
    assert!(ran.stderr.contains("\"A\":\"***\"") && !ran.stderr.contains("hush"), "{}", ran.stderr);
}

#[test]
fn a_server_is_switched_where_it_stands() {
    let home = TestHome::new();
    home.write(USER_CONFIG, ONE);
    let ran = home.run_ok(&["disable", "x"]);
    assert_eq!(ran.stderr, "Disabled x in ~/.config/wharf/config.json\n  undo: wharf enable x\n");
    assert_eq!(state(&home), "disabled");
    assert_eq!(home.run_ok(&["disable", "x"]).stderr, "x is already disabled\n");
    let document = home.run_ok(&["enable", "x", "--json"]).json();
    assert_eq!((&document["action"], &document["files"]), (&json!("enabled"), &json!([home.path(USER_CONFIG)])));
    assert_eq!(state(&home), "enabled");
}

#[test]
fn a_layer_can_switch_a_lower_one_off_and_enable_finds_it() {
    let home = TestHome::new();
    home.write(USER_CONFIG, ONE);
    home.run_ok(&["add-json", "x", "{\"enabled\": false}"]);
    assert_eq!(state(&home), "disabled");
    let ran = home.run_ok(&["enable", "x"]);
    assert!(ran.stderr.starts_with("Enabled x in .wharf/config.json\n"), "{}", ran.stderr);
    assert_eq!((state(&home).as_str(), home.read(USER_CONFIG).as_str()), ("enabled", ONE));
}

#[test]
fn a_file_of_a_flag_is_edited_and_a_variable_is_not() {
    let home = TestHome::new();
    let file = home.write("flag.json", ONE).display().to_string();
    home.run_ok(&["disable", "x", "--config", &file]);
    assert!(home.read("flag.json").contains("\"enabled\": false"));
    let yaml = home.write("flag.yaml", "mcpServers: {x: {command: a}}\n").display().to_string();
    let ran = home.run(["disable", "x", "--config", &yaml]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("is YAML, which Wharf can read but not edit") && ran.stderr.contains("edit it manually"),
        "{}",
        ran.stderr
    );
    let home = TestHome::new().with_env("WHARF_MCP_SERVERS", r#"{"x": {"command": "a"}}"#);
    for command in ["remove", "enable", "disable"] {
        let ran = home.run([command, "x"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("it is defined by the variable WHARF_MCP_SERVERS"), "{}", ran.stderr);
    }
}

#[test]
fn a_file_that_cannot_be_changed_is_told_with_a_way_out() {
    let home = TestHome::new();
    home.write(SHARED_CONFIG, r#"{"mcpServers": {"x": {"command": "a"}}}"#);
    std::fs::hard_link(home.path(SHARED_CONFIG), home.path("project/other")).unwrap();
    let ran = home.run(["disable", "x"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("wharf add-json x '{\"enabled\": false}'"), "{}", ran.stderr);
}

/// What only switches a server off is taken back without touching the server.
#[test]
fn a_switch_is_removed_and_not_what_it_switches() {
    let home = TestHome::new();
    home.write(USER_CONFIG, r#"{"mcpServers": {"github": {"command": "a", "env": {"TOKEN": "hush"}}}}"#);
    let ran = home.run_ok(&["add-json", "github", r#"{"enabled": false}"#]);
    assert!(ran.stderr.contains("undo: wharf enable github") && !ran.stderr.contains("takes precedence"), "{ran:?}");
    let ran = home.run_ok(&["remove", "github"]);
    assert!(ran.stderr.contains("Removed the entry that disabled github"), "{ran:?}");
    assert!(home.read(USER_CONFIG).contains("hush"));
    assert_eq!(home.run_ok(&["list", "--json"]).json()["items"][0]["state"], "enabled");
}

/// A flag of ours behind the command is hardly meant for the server.
#[test]
fn a_flag_behind_the_command_is_not_swallowed() {
    let home = TestHome::new();
    for words in [&["--scope", "global"][..], &["-e", "TOKEN=x"], &["--trust"]] {
        let ran = home.run([&["add", "a", "npx", "pkg"], words].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("would be passed to the server as an argument"), "{ran:?}");
    }
    home.run_ok(&["add", "a", "--", "npx", "pkg", "--scope", "global"]);
    assert!(home.read(PROJECT_CONFIG).contains(r#""--scope""#));
}
