//! The agent uses the tools of servers, and what comes of that reaches the model and the servers.

use serde_json::json;
use wharf_testkit::modeld::{Answer, Say, Script, When};
use wharf_testkit::oracle::{Ledger, poll_until};
use wharf_testkit::pty::PATIENCE;
use wharf_testkit::repl::wait_for_state;

use super::agent_home::{AgentHome, all_allowed, answer, demo};
use super::others::{Web, npm};
use crate::support::fault_server;

#[test]
fn model_is_offered_the_tools() {
    let home = AgentHome::new(Script::from_turns([Answer::text("I have many.")]));
    let files = npm("server-filesystem", &[&home.path("project").display().to_string()]);
    let entry = home.marked(files);
    let home = home.servers(json!({"files": entry}));
    let mut terminal = home.repl(&["--dangerously-skip-permissions"]);
    wait_for_state(&mut terminal, "files", "ready");
    terminal.line("What tools do you have?");
    terminal.expect("I have many.");
    let request = home.request(1);
    let names = request.tool_names();
    for tool in ["mcp__files__read_text_file", "mcp__files__write_file", "mcp__files__list_directory"] {
        assert!(names.contains(&tool), "{names:?}");
    }
    home.leave(terminal);
}

#[test]
fn sub_agent_has_the_tools() {
    let task = json!({"description": "add two numbers", "prompt": "Add 2 and 40."});
    let script = Script::default()
        .when(When::ToolResult("The sum is 42.".into()), Answer::text("My helper says 42."))
        .when(When::ToolResult("42".into()), Answer::text("The sum is 42."))
        .when(When::Text("Add 2 and 40.".into()), Answer::call("mcp__demo__add", json!({"a": 2, "b": 40})))
        .when(When::Text("Let somebody add.".into()), Answer::call("Agent", task));
    let home = AgentHome::new(script).with("permissions", all_allowed());
    let entry = home.marked(demo());
    let home = home.servers(json!({"demo": entry}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Let somebody add.");
    terminal.expect("My helper says 42.");
    let (person, helper) = (home.request(1), home.request(2));
    assert!(person.tool_names().contains(&"Agent"));
    assert!(helper.tool_names().contains(&"mcp__demo__add") && !helper.tool_names().contains(&"Agent"));
    home.leave(terminal);
}

#[test]
fn results_and_errors_reach_the_model() {
    let calls = Answer::call("echo", json!({"text": "ahoy"}))
        .with_block(Say::call("json_response", json!({"ship": "Ada"})))
        .with_block(Say::call("fail", json!({})));
    let home =
        AgentHome::new(Script::from_turns([calls, Answer::text("Two worked.")])).with("permissions", all_allowed());
    let entry = home.marked(demo());
    let home = home.servers(json!({"demo": entry}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Try all three.");
    terminal.expect("Two worked.");
    home.tells(2, &[Ok("ahoy"), Ok("Ada"), Err("always fails")]);
    home.leave(terminal);
}

#[test]
fn each_api_format_completes_a_run() {
    for format in ["anthropic", "chat", "responses"] {
        let script = Script::from_turns([
            Answer::default()
                .with_block(Say::Thinking("Adding.".into()))
                .with_block(Say::call("add", json!({"a": 2, "b": 40}))),
            Answer::text("It is 42."),
        ]);
        let home = AgentHome::speaking(format, script).with("permissions", all_allowed());
        let entry = home.marked(demo());
        let home = home.servers(json!({"demo": entry}));
        let mut terminal = home.repl(&[]);
        wait_for_state(&mut terminal, "demo", "ready");
        terminal.line("What is the sum?");
        terminal.expect("It is 42.");
        home.tells(2, &[Ok("42")]);
        home.leave(terminal);
    }
}

#[test]
fn cancelled_run_cancels_the_call_on_the_server() {
    let web = Web::start("--http");
    let home = AgentHome::new(Script::from_turns([Answer::call("slow", json!({"steps": 1000, "wait_ms": 100}))]));
    let home = home.servers(json!({"quay": {"url": web.url}})).with("permissions", all_allowed());
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "quay", "ready");
    terminal.line("Take your time.");
    terminal.expect("step 3");
    terminal.control('c');
    web.has_said("stopped");
    terminal.expect("cancelled");
    wait_for_state(&mut terminal, "quay", "ready");
    home.leave(terminal);
}

#[test]
fn ctrl_c_cancels_ten_calls() {
    let slow = |number: usize| Say::call("slow", json!({"ms": 600_000, "nonce": format!("n{number}")}));
    let calls = (0..10).fold(Answer::default(), |answer, number| answer.with_block(slow(number)));
    let home = AgentHome::new(Script::from_turns([calls])).with("permissions", all_allowed());
    let ledger = home.path("ledger");
    let args = ["stdio", "ok", "--ledger", ledger.to_str().unwrap()];
    let entry = home.marked(json!({"command": fault_server(), "args": args}));
    let home = home.servers(json!({"slow": entry}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "slow", "ready");
    terminal.line("Do ten things at once.");
    let count = |word: &str| Ledger::read(&ledger).unwrap().lines.iter().filter(|line| line.starts_with(word)).count();
    assert!(poll_until(PATIENCE, || count("call slow") == 10), "{}", count("call slow"));
    terminal.control('c');
    assert!(poll_until(PATIENCE, || count("cancelled") == 10), "{}", count("cancelled"));
    terminal.expect("cancelled");
    wait_for_state(&mut terminal, "slow", "ready");
    home.leave(terminal);
}

#[test]
fn resources_and_prompts_are_available_as_tools() {
    let script = Script::from_turns([
        Answer::call("ListMcpResources", json!({"server": "demo"}))
            .with_block(Say::call("ReadMcpResource", json!({"server": "demo", "uri": "harbour://tide"})))
            .with_block(Say::call("ListMcpPrompts", json!({"server": "demo"}))),
        Answer::call("GetMcpPrompt", json!({"server": "demo", "name": "welcome", "arguments": {"name": "Ada"}})),
        Answer::text("Now I know."),
    ]);
    let home = AgentHome::new(script);
    let entry = home.marked(demo());
    let home = home.servers(json!({"demo": entry}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Look around.");
    // Reading what a server offers is not asked about; taking its words as instructions is.
    answer(&mut terminal, "Allow the call?", "y");
    terminal.expect("Now I know.");
    home.tells(2, &[Ok("demo://greeting"), Ok("The tide stands at"), Ok("welcome")]);
    home.tells(3, &[Ok("Please welcome Ada aboard")]);
    home.leave(terminal);
}

#[test]
fn changed_tool_list_applies_to_next_request() {
    let script =
        Script::from_turns([Answer::call("hire_crane", json!({})), Answer::text("Hired."), Answer::text("I see it.")]);
    let home = AgentHome::new(script).with("permissions", all_allowed());
    let entry = home.marked(demo());
    let home = home.servers(json!({"demo": entry}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Hire a crane.");
    terminal.expect("Hired.");
    assert!(!home.request(1).tool_names().contains(&"mcp__demo__crane"));
    let listed = poll_until(PATIENCE, || {
        terminal.line("/mcp list-tools demo");
        terminal.expect("grant no permission").contains("  crane ")
    });
    assert!(listed, "{}", terminal.shown_text());
    terminal.line("Do you see it?");
    terminal.expect("I see it.");
    let request = home.request(3);
    assert!(request.tool_names().contains(&"mcp__demo__crane"), "{:?}", request.tool_names());
    home.leave(terminal);
}
