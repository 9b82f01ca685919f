//! `remove`, `enable`, `disable`.

use serde_json::json;
use wharf_testkit::test_home::{PROJECT_CONFIG, SHARED_CONFIG, TestHome, USER_CONFIG};

const ONE: &str = "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"a\"\n    }\n  }\n}\n";

fn state(home: &TestHome) -> String {
    home.run_ok(&["list", "--json"]).json()["items"][0]["state"].as_str().unwrap().to_owned()
}

#[test]
fn removed_server_can_be_restored() {
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
fn project_entry_is_removed_first_and_next_one_reported() {
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

/// U4: a file that Wharf created and emptied does not stay behind.
#[test]
fn emptied_project_file_is_removed_unless_it_holds_something_else() {
    let home = TestHome::new();
    home.run_ok(&["add", "x", "--", "a"]);
    home.run_ok(&["remove", "x"]);
    assert!(!home.path("project/.wharf").exists());
    home.run_ok(&["add-json", "x", "{\"enabled\": false}"]);
    home.run_ok(&["remove", "x"]);
    assert!(!home.path("project/.wharf").exists());
    for rest in ["// note\n{}", "{\"permissions\": []}"] {
        home.write(PROJECT_CONFIG, rest);
        home.run_ok(&["add", "x", "--", "a"]);
        home.run_ok(&["remove", "x"]);
        assert!(home.path(PROJECT_CONFIG).exists(), "{rest}");
        std::fs::remove_file(home.path(PROJECT_CONFIG)).unwrap();
    }
    home.write(PROJECT_CONFIG, ONE);
    home.write("project/.wharf/notes", "");
    home.run_ok(&["remove", "x"]);
    assert!(!home.path(PROJECT_CONFIG).exists() && home.path("project/.wharf/notes").exists());
}

#[test]
fn undo_of_removal_masks_secrets() {
    let home = TestHome::new();
    home.write(USER_CONFIG, r#"{"mcpServers": {"x": {"command": "a", "env": {"A": "hush"}}}}"#);
    let ran = home.run_ok(&["remove", "x"]);
    assert!(ran.stderr.contains("\"A\":\"***\"") && !ran.stderr.contains("hush"), "{}", ran.stderr);
}

#[test]
fn enable_and_disable_edit_the_defining_file() {
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
fn enable_edits_the_layer_that_disables() {
    let home = TestHome::new();
    home.write(USER_CONFIG, ONE);
    home.run_ok(&["add-json", "x", "{\"enabled\": false}"]);
    assert_eq!(state(&home), "disabled");
    let ran = home.run_ok(&["enable", "x"]);
    assert!(ran.stderr.starts_with("Enabled x in .wharf/config.json\n"), "{}", ran.stderr);
    assert_eq!((state(&home).as_str(), home.read(USER_CONFIG).as_str()), ("enabled", ONE));
}

#[test]
fn config_file_is_edited_but_yaml_and_variable_are_not() {
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
fn uneditable_file_suggests_add_json() {
    let home = TestHome::new();
    home.write(SHARED_CONFIG, r#"{"mcpServers": {"x": {"command": "a"}}}"#);
    std::fs::hard_link(home.path(SHARED_CONFIG), home.path("project/other")).unwrap();
    let ran = home.run(["disable", "x"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("wharf add-json x '{\"enabled\": false}'"), "{}", ran.stderr);
}

/// What only switches a server off is taken back without touching the server.
#[test]
fn removing_a_disabling_entry_leaves_the_server() {
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
fn wharf_flag_after_the_command_is_refused() {
    let home = TestHome::new();
    for words in [&["--scope", "global"][..], &["-e", "TOKEN=x"], &["--trust"]] {
        let ran = home.run([&["add", "a", "npx", "pkg"], words].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("would be passed to the server as an argument"), "{ran:?}");
    }
    home.run_ok(&["add", "a", "--", "npx", "pkg", "--scope", "global"]);
    assert!(home.read(PROJECT_CONFIG).contains(r#""--scope""#));
}

/// G6.
#[test]
fn switch_in_a_scope_reports_the_state_that_another_scope_keeps() {
    let home = TestHome::new();
    home.write(USER_CONFIG, ONE);
    home.run_ok(&["disable", "x"]);
    let ran = home.run(["enable", "x", "--scope", "project"]);
    assert_eq!((ran.code, state(&home).as_str()), (Some(2), "disabled"), "{ran:?}");
    assert!(ran.stderr.contains("the server is still disabled"), "{ran:?}");
    assert!(ran.stderr.contains("hint: `wharf enable x` enables it in every scope"), "{ran:?}");
    home.run_ok(&["disable", "x", "--scope", "project"]);
    let ran = home.run_ok(&["enable", "x", "--scope", "project", "--json"]);
    let document = ran.json();
    assert_eq!((&document["action"], &document["enabled"]), (&json!("enabled"), &json!(false)), "{document}");
    assert!(ran.stderr.contains("warning: x is still disabled; `wharf enable x`"), "{ran:?}");
    home.run_ok(&["enable", "x"]);
    assert_eq!(state(&home), "enabled");
    for line in ["list --scope project", "list --scope project --probe"] {
        let ran = home.run_line(line);
        let text = "no MCP servers configured in this scope; `wharf list` shows all\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), text), "{line}: {ran:?}");
    }
}

/// F10: `--scope` selects the file; in the project's scope, any server can be disabled for the project.
#[test]
fn enable_and_disable_change_the_given_scope() {
    let home = TestHome::new();
    home.write(USER_CONFIG, ONE);
    let ran = home.run_ok(&["disable", "x", "--scope", "project"]);
    assert_eq!(ran.stderr, "Disabled x in .wharf/config.json\n  undo: wharf enable x --scope project\n");
    assert_eq!((state(&home).as_str(), home.read(USER_CONFIG).as_str()), ("disabled", ONE));
    assert_eq!(home.run_ok(&["disable", "x", "--scope", "project"]).stderr, "x is already disabled\n");
    home.run_ok(&["enable", "x", "--scope", "project"]);
    assert_eq!(state(&home), "enabled");
    assert!(!home.path("project/.wharf").exists());
    home.write(SHARED_CONFIG, ONE);
    let document = home.run_ok(&["disable", "x", "--scope", "global", "--json"]).json();
    assert_eq!(
        (&document["files"], &document["undo"]),
        (&json!([home.path(USER_CONFIG)]), &json!("wharf enable x --scope global"))
    );
    assert_eq!(home.read(SHARED_CONFIG), ONE);
    std::fs::remove_file(home.path(USER_CONFIG)).unwrap();
    let ran = home.run(["disable", "x", "--scope", "global"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("no global server named `x`"), "{ran:?}");
}
