//! `import --replace`: a program uses its servers through `wharf serve`.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use wharf_testkit::test_home::{TestHome, USER_CONFIG};

use crate::support::WHARF;

/// A program, its file, a text with the servers `one` and `two`, and a part of it that stays.
struct ProgramFile {
    client: &'static str,
    file: &'static str,
    text: &'static str,
    stays: &'static str,
}

const MCP_SERVERS: &str = "{\n  // mine\n  \"mcpServers\": {\n    \"one\": {\"command\": \"one\", \"args\": [\"-x\"]},\n    \
                           \"two\": {\"command\": \"two\"}\n  },\n  \"theme\": \"dark\"\n}\n";

const FILES: [ProgramFile; 10] = [
    ProgramFile { client: "claude-code", file: "home/.claude.json", text: MCP_SERVERS, stays: "\"theme\": \"dark\"" },
    ProgramFile {
        client: "claude-desktop",
        file: "home/.config/Claude/claude_desktop_config.json",
        text: MCP_SERVERS,
        stays: "\"theme\": \"dark\"",
    },
    ProgramFile { client: "cursor", file: "home/.cursor/mcp.json", text: MCP_SERVERS, stays: "// mine" },
    ProgramFile {
        client: "vs-code",
        file: "home/.config/Code/User/mcp.json",
        text: "{\"servers\": {\"one\": {\"type\": \"stdio\", \"command\": \"one\", \"args\": [\"-x\"]}, \
               \"two\": {\"type\": \"stdio\", \"command\": \"two\"}}, \"inputs\": [/* none */]}",
        stays: "/* none */",
    },
    ProgramFile {
        client: "codex",
        file: "home/.codex/config.toml",
        text: "# mine\nmodel = \"x\"\n\n[mcp_servers.one]\ncommand = \"one\"\nargs = [\"-x\"]\n\n[mcp_servers.two]\n\
               command = \"two\"\n\n[tui]\ntheme = \"dark\"\n",
        stays: "[tui]\ntheme = \"dark\"",
    },
    ProgramFile { client: "gemini", file: "home/.gemini/settings.json", text: MCP_SERVERS, stays: "// mine" },
    ProgramFile {
        client: "opencode",
        file: "home/.config/opencode/opencode.json",
        text: "{\"mcp\": {\"one\": {\"type\": \"local\", \"command\": [\"one\", \"-x\"]}, \
               \"two\": {\"type\": \"local\", \"command\": [\"two\"]}}, \"theme\": \"dark\" /* mine */}",
        stays: "/* mine */",
    },
    ProgramFile {
        client: "goose",
        file: "home/.config/goose/config.yaml",
        text: "# mine\nextensions:\n  one:\n    type: stdio\n    cmd: one\n    args: [\"-x\"]\n    enabled: true\n  \
               developer:\n    type: builtin\n    enabled: true\n  two:\n    type: stdio\n    cmd: two\n    enabled: true\n\
               GOOSE_MODEL: x\n",
        stays: "developer:\n    type: builtin",
    },
    ProgramFile {
        client: "zed",
        file: "home/.config/zed/settings.json",
        text: "{\"context_servers\": {\"one\": {\"command\": \"one\", \"args\": [\"-x\"]}, \"two\": {\"command\": \"two\"}}, \
               \"vim_mode\": true /* mine */}",
        stays: "\"vim_mode\": true /* mine */",
    },
    ProgramFile {
        client: "windsurf",
        file: "home/.codeium/windsurf/mcp_config.json",
        text: MCP_SERVERS,
        stays: "\"theme\": \"dark\"",
    },
];

/// Returns the servers that a program has, as `import` sees them.
fn servers(home: &TestHome, client: &str) -> Vec<String> {
    let document = home.run_ok(&["import", client, "--dry-run", "--json"]).json();
    document["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn servers_of_every_program_are_replaced_and_come_back() {
    for ProgramFile { client, file, text, stays } in FILES {
        let home = TestHome::new();
        home.write(file, text);
        let planned = home.run_ok(&["import", client, "--replace", "--dry-run"]);
        assert!(planned.stderr.contains("would lose one, two and get `wharf serve`"), "{client}: {planned:?}");
        assert_eq!((home.read(file).as_str(), home.path(USER_CONFIG).exists()), (text, false), "{client}");
        let replaced = home.run_ok(&["import", client, "--replace", "--all"]);
        let undo = format!("undo: wharf import {client} --undo");
        assert!(replaced.stderr.contains("Replaced one, two") && replaced.stderr.contains(&undo), "{replaced:?}");
        let edited = home.read(file);
        assert!(edited.contains(stays) && edited.contains(WHARF) && edited.contains("serve"), "{client}: {edited}");
        let expected: &[&str] = if client == "goose" { &["wharf", "developer"] } else { &["wharf"] };
        assert_eq!(servers(&home, client), expected, "{client}: {edited}");
        let stored: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
        assert_eq!(stored["mcpServers"]["one"]["command"], "one", "{client}");
        assert_eq!(stored["mcpServers"]["one"]["args"], json!(["-x"]), "{client}");
        assert!(stored["mcpServers"]["wharf"].is_null(), "{client}: the gateway is not one of its servers");
        home.run_ok(&["import", client, "--undo"]);
        assert_eq!(home.read(file), text, "{client}");
        assert_eq!(home.run(["import", client, "--undo"]).code, Some(2), "{client}");
    }
}

/// A server that Wharf does not have as the program has it stays in the program's file.
#[test]
fn servers_that_are_not_in_wharf_stay_in_the_file() {
    let home = TestHome::new();
    let other = json!({"mcpServers": {"same": {"command": "a"}, "other": {"command": "b"}}});
    home.write(USER_CONFIG, &other.to_string());
    let file = "home/.cursor/mcp.json";
    let servers = json!({
        "same": {"command": "a"}, "other": {"command": "c"}, "new": {"command": "d"}, "odd": {"nonsense": true},
    });
    home.write(file, &json!({ "mcpServers": servers }).to_string());
    let replaced = home.run_ok(&["import", "cursor", "--replace", "--all", "--json"]).json();
    assert_eq!(replaced["replaced"][0]["removed"], json!(["new", "same"]), "{replaced}");
    assert_eq!(replaced["replaced"][0]["kept"], json!(["odd", "other"]), "{replaced}");
    let edited: Value = serde_json::from_str(&home.read(file)).unwrap();
    let keys: Vec<&String> = edited["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["odd", "other", "wharf"], "{edited}");
    // A second time there is nothing to replace, and the undo still leads to the first text.
    let again = home.run_ok(&["import", "cursor", "--replace", "--all", "--json"]).json();
    assert_eq!(again["replaced"], json!([]), "{again}");
    home.run_ok(&["import", "cursor", "--undo"]);
    assert!(home.read(file).contains("\"new\""));
}

#[test]
fn undo_does_not_overwrite_later_changes() {
    let home = TestHome::new();
    let file = "home/.cursor/mcp.json";
    home.write(file, r#"{"mcpServers": {"one": {"command": "one", "env": {"API_TOKEN": "hush"}}}}"#);
    let replaced = home.run_ok(&["import", "cursor", "--replace", "--all"]);
    assert!(!replaced.stderr.contains("hush"), "{replaced:?}");
    let records = home.path("home/.local/state/wharf/replaced-files.json");
    assert_eq!(std::fs::metadata(&records).unwrap().permissions().mode() & 0o777, 0o600);
    let changed = home.read(file).replace("\"wharf\"", "\"renamed\"");
    home.write(file, &changed);
    let refused = home.run(["import", "cursor", "--undo"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("has changed since"), "{refused:?}");
    assert_eq!(home.read(file), changed);
}

/// Others use a project's file too.
#[test]
fn file_of_a_project_is_changed_only_if_it_is_named() {
    let home = TestHome::new();
    let file = "project/.cursor/mcp.json";
    let text = r#"{"mcpServers": {"theirs": {"command": "a"}}}"#;
    home.write(file, text);
    home.run_ok(&["import", "cursor", "--replace", "--all"]);
    assert_eq!(home.read(file), text);
}
