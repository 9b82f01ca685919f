//! Servers come from files and from the environment, and what is wrong there is found.

use serde_json::json;
use wharf_testkit::modeld::{Answer, Script};
use wharf_testkit::repl::wait_for_state;

use super::agent_home::{AgentHome, all_allowed, answer, demo};

#[test]
fn servers_come_from_file_and_environment_variable() {
    let home = AgentHome::new(Script::from_turns([Answer::text("I see both.")]));
    let (filed, named) = (home.marked(demo()), home.marked(demo()));
    let mut from_variable = named;
    from_variable["name"] = json!("named");
    let home = home
        .with("version", json!(1))
        .with("mcp", json!({"enabled": true, "servers": {"filed": filed}, "globalSettings": {"timeout": 20_000}}))
        .variable("WHARF_MCP_SERVERS", &json!([from_variable]).to_string());
    let mut terminal = home.repl(&[]);
    assert_eq!(wait_for_state(&mut terminal, "filed", "ready").row("filed").source, "global");
    assert_eq!(wait_for_state(&mut terminal, "named", "ready").row("named").source, "env");
    terminal.line("Do you see both?");
    terminal.expect("I see both.");
    let request = home.request(1);
    for tool in ["mcp__filed__echo", "mcp__named__echo"] {
        assert!(request.tool_names().contains(&tool), "{:?}", request.tool_names());
    }
    home.leave(terminal);
}

#[test]
fn invalid_entries_are_reported() {
    let home = AgentHome::new(Script::default()).servers(json!({
        "bare": {"args": ["x"]}, "both": {"command": "x", "url": "https://example.org/mcp"}, "fine": demo(),
    }));
    let checked = home.run(["validate"]);
    assert_ne!(checked.code, Some(0), "{checked:?}");
    let told = format!("{}{}", checked.stdout, checked.stderr);
    for part in ["`bare` has neither `command` nor `url`", "`both` has both", "fix", "config.json"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("`fine`"), "{told}");
}

#[test]
fn tool_filters_include_and_exclude() {
    let home = AgentHome::new(Script::from_turns([Answer::text("Few.")]));
    let mut entry = home.marked(demo());
    entry["includeTools"] = json!(["echo", "add", "raise_*"]);
    entry["excludeTools"] = json!(["add"]);
    let home = home.servers(json!({"demo": entry}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("What tools do you have?");
    terminal.expect("Few.");
    let request = home.request(1);
    let names: Vec<&str> = request.tool_names().into_iter().filter(|name| name.starts_with("mcp__")).collect();
    assert_eq!(names, ["mcp__demo__echo", "mcp__demo__raise_tide"]);
    home.leave(terminal);
}

#[test]
fn same_tool_names_of_two_servers_stay_distinct() {
    let calls = Answer::call("mcp__east__echo", json!({"text": "sunrise"}));
    let home =
        AgentHome::new(Script::from_turns([calls, Answer::text("From the east.")])).with("permissions", all_allowed());
    let (one, two) = (home.marked(demo()), home.marked(demo()));
    let home = home.servers(json!({"east": one, "west": two}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "east", "ready");
    wait_for_state(&mut terminal, "west", "ready");
    terminal.line("Who says it?");
    terminal.expect("east.echo");
    terminal.expect("From the east.");
    let request = home.request(1);
    let mut names = request.tool_names();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "no name is there twice");
    assert!(names.contains(&"mcp__east__echo") && names.contains(&"mcp__west__echo"), "{names:?}");
    home.leave(terminal);
}

#[test]
fn server_added_by_the_project_needs_approval() {
    let home = AgentHome::new(Script::default()).servers(json!({}));
    let mut terminal = home.repl(&[]);
    terminal.expect("no servers");
    // The second time it has changed since it was approved.
    for words in [&["demo-server"][..], &["demo-server", "--stdio"]] {
        let mut entry = home.marked(demo());
        entry["args"] = json!(words);
        home.write("project/.mcp.json", &json!({"mcpServers": {"theirs": entry}}).to_string());
        terminal.expect("theirs needs approval: wharf approve theirs");
        answer(&mut terminal, "Approve theirs?", "y");
        terminal.expect("added theirs");
        wait_for_state(&mut terminal, "theirs", "ready");
    }
    home.leave(terminal);
}

#[test]
fn missing_key_disables_only_the_conversation() {
    let home = AgentHome::new(Script::default());
    let entry = home.marked(demo());
    let home = home.servers(json!({"demo": entry})).with("providers", json!({})).with("model", json!("anthropic"));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Are you there?");
    terminal.expect("ANTHROPIC_API_KEY");
    terminal.line("/tools demo");
    terminal.expect("echo");
    home.leave(terminal);
    assert!(home.model.requests().is_empty());
}
