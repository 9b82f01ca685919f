//! What a person sees of the servers.

use serde_json::json;
use wharf_testkit::modeld::{Answer, Script};
use wharf_testkit::repl::{Row, wait_for_state};

use super::agent_home::{AgentHome, demo};

#[test]
fn table_shows_every_server_during_a_run() {
    let home = AgentHome::new(Script::from_turns([Answer::text("Here I am.").held_at("quay", 0)]));
    let entry = home.marked(demo());
    let mut off = demo();
    off["enabled"] = json!(false);
    let home = home.servers(json!({"demo": entry, "off": off, "lost": {"command": "/nowhere/at/all"}}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Are you there?");
    home.request(1);
    let table = wait_for_state(&mut terminal, "lost", "failed");
    let headings = Row {
        server: "Server",
        transport: "Transport",
        source: "Source",
        enabled: "Enabled",
        status: "Status",
        tools: "Tools",
        updated: "Updated",
    };
    assert_eq!(table.row("Server"), headings);
    let (demo, off, lost) = (table.row("demo"), table.row("off"), table.row("lost"));
    assert_eq!((demo.transport, demo.source, demo.enabled, demo.status), ("stdio", "global", "yes", "✓ ready"));
    assert!(demo.tools.parse::<usize>().unwrap() > 10 && demo.updated.ends_with("ago"), "{demo:?}");
    assert_eq!((off.enabled, off.status, off.tools), ("no", "○ disabled", "-"));
    assert_eq!((lost.status, lost.tools), ("✗ failed", "-"));
    assert!(table.text.contains("Use '/mcp list-tools' to see all tools"), "{}", table.text);
    home.model.open_gate("quay");
    terminal.expect("Here I am.");
    home.leave(terminal);
}

#[test]
fn server_details_show_last_error_and_connection() {
    let home = AgentHome::new(Script::default());
    let entry = home.marked(demo());
    let home = home.servers(json!({"demo": entry, "lost": {"command": "/nowhere/at/all"}}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    wait_for_state(&mut terminal, "lost", "failed");
    terminal.line("/mcp demo");
    let details = terminal.expect("Offers:");
    for part in ["Connected:   last at ", "Revision:    2026-07-28", "Features:    tools, resources"] {
        assert!(details.contains(part), "{part}: {details}");
    }
    terminal.line("/mcp lost");
    terminal.expect("/nowhere/at/all");
    home.leave(terminal);
}

#[test]
fn empty_configuration_is_reported() {
    let home = AgentHome::new(Script::default()).servers(json!({}));
    let mut terminal = home.repl(&[]);
    terminal.line("/mcp");
    terminal.expect("no MCP servers configured");
    home.leave(terminal);
}

#[test]
fn tools_are_listed_by_server() {
    let home = AgentHome::new(Script::default());
    let (one, two) = (home.marked(demo()), home.marked(demo()));
    let home = home.servers(json!({"east": one, "west": two}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "east", "ready");
    wait_for_state(&mut terminal, "west", "ready");
    terminal.line("/mcp list-tools");
    let listed = terminal.expect("grant no permission");
    for server in ["east", "west"] {
        let (_, after) = listed.split_once(&format!("{server}  ")).unwrap();
        let section = after.split("\n\n").next().unwrap();
        assert!(section.contains(" echo ") && section.contains("read-only"), "{server}: {listed}");
    }
    home.leave(terminal);
}
