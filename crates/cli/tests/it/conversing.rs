//! A conversation in the REPL: results in full, refusals, cancelled questions, failed servers, resuming.

use serde_json::json;
use wharf_testkit::modeld::{Answer, Script};
use wharf_testkit::repl::{wait_for_question, wait_for_state};
use wharf_testkit::test_home::USER_CONFIG;

use crate::acceptance::agent_home::{AgentHome, all_allowed, answer, demo};
use crate::support::boom;

fn demo_home(script: Script) -> AgentHome {
    let home = AgentHome::new(script);
    let entry = home.marked(demo());
    home.servers(json!({"demo": entry}))
}

/// U6.
#[test]
fn long_result_can_be_shown_in_full() {
    let text = (1..=9).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
    let home = demo_home(Script::from_turns([
        Answer::call("mcp__demo__echo", json!({ "text": text })),
        Answer::text("Done."),
    ]));
    let home = home.with("permissions", all_allowed());
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Count.");
    terminal.expect("6 more lines (/show 1 shows all)");
    terminal.expect("Done.");
    terminal.line("/show");
    terminal.expect("line 9");
    terminal.line("/show 7");
    terminal.expect("stored results: 1 to 1");
    home.leave(terminal);
}

/// U6.
#[test]
fn refused_call_is_not_asked_again_in_the_turn() {
    let call = || Answer::call("mcp__demo__echo", json!({"text": "ahoy"}));
    let home = demo_home(Script::from_turns([call(), call(), Answer::text("I give up.")]));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Say ahoy.");
    answer(&mut terminal, "Allow the call?", "n");
    terminal.expect("I give up.");
    home.tells(2, &[Err("denied by the user")]);
    let told = home.request(3).results();
    assert!(told.iter().any(|result| result.is_error && result.text.contains("was not asked again")), "{told:?}");
    let shown = home.leave(terminal);
    assert_eq!(shown.matches("Allow the call?").count(), 1, "{shown}");
}

/// U6.
#[test]
fn ctrl_c_at_a_permission_question_does_not_blame_the_server() {
    let home = demo_home(Script::from_turns([Answer::call("mcp__demo__echo", json!({"text": "ahoy"}))]));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Say ahoy.");
    wait_for_question(&mut terminal, "Allow the call?");
    terminal.control('c');
    terminal.expect("You cancelled the question about demo");
    let shown = home.leave(terminal);
    assert!(!shown.contains("withdrew"), "{shown}");
}

/// U6.
#[test]
fn failed_server_is_announced_while_it_is_retried() {
    let home = AgentHome::new(Script::from_turns([]));
    let home = home.servers(json!({ "boom": boom() }));
    let mut terminal = home.repl(&[]);
    let shown = terminal.expect("Retrying");
    assert!(shown.contains("MCP server `boom` failed") && shown.contains("stderr: boom: missing API key"), "{shown}");
    home.leave(terminal);
}

/// U6.
#[test]
fn leaving_names_the_conversation_and_resuming_shows_a_recap() {
    let home = AgentHome::new(Script::from_turns([Answer::text("Ahoy, Ada.")]));
    let home = home.servers(json!({}));
    let mut terminal = home.repl(&[]);
    terminal.line("Greet Ada.");
    terminal.expect("Ahoy, Ada.");
    let shown = home.leave(terminal);
    let (_, command) = shown.rsplit_once("resume it with: wharf ").unwrap_or_else(|| panic!("{shown}"));
    let flag = command.split_whitespace().next().unwrap();
    let mut terminal = home.repl(&[flag]);
    terminal.expect("you: Greet Ada.");
    terminal.expect("model: Ahoy, Ada.");
    home.leave(terminal);
}

/// F11.
#[test]
fn tool_switched_off_is_neither_offered_nor_called() {
    let call = || Answer::call("mcp__demo__echo", json!({"text": "ahoy"}));
    let home = demo_home(Script::from_turns([call(), Answer::text("It is off."), call(), Answer::text("It is on.")]));
    let home = home.with("permissions", all_allowed());
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("/tools off demo.echo");
    terminal.expect("demo.echo is off for this session");
    terminal.line("/tools demo");
    terminal.expect("off for this session: demo.echo");
    terminal.line("Say ahoy.");
    terminal.expect("It is off.");
    assert!(!home.request(1).tool_names().contains(&"mcp__demo__echo"));
    home.tells(2, &[Err("mcp__demo__echo")]);
    terminal.line("/tools on demo.echo");
    terminal.expect("demo.echo is on again");
    terminal.line("Say ahoy.");
    terminal.expect("It is on.");
    assert!(home.request(3).tool_names().contains(&"mcp__demo__echo"));
    home.leave(terminal);
}

/// F11.
#[test]
fn resuming_names_a_server_that_was_enabled_for_the_session() {
    let home = AgentHome::new(Script::from_turns([Answer::text("Ahoy.")]));
    let mut entry = home.marked(demo());
    entry["enabled"] = json!(false);
    let home = home.servers(json!({ "demo": entry }));
    let mut terminal = home.repl(&[]);
    terminal.line("/mcp enable demo");
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Greet me.");
    terminal.expect("Ahoy.");
    home.leave(terminal);
    let mut terminal = home.repl(&["--resume"]);
    terminal.expect("/mcp enable demo enables it for this session");
    home.leave(terminal);
}

/// U10.
#[test]
fn quit_and_exit_leave_without_a_slash() {
    for word in ["quit", "exit"] {
        let home = AgentHome::new(Script::from_turns([Answer::text("Never said.")]));
        let home = home.servers(json!({}));
        let mut terminal = home.repl(&[]);
        terminal.line(word);
        assert_eq!(terminal.end().code, Some(0), "{word}");
        assert!(home.model.requests().is_empty());
    }
}

/// U10.
#[test]
fn rule_is_removed_by_its_number() {
    let home = AgentHome::new(Script::from_turns([]));
    let home = home.servers(json!({})).with(
        "permissions",
        json!([{"tool": "mcp__git__log", "action": "allow"}, {"tool": "mcp__git__push", "action": "deny"}]),
    );
    let mut terminal = home.repl(&[]);
    terminal.line("/permissions remove 7");
    terminal.expect("no rule 7");
    terminal.line("/permissions remove 2");
    terminal.expect("Removed rule 2");
    terminal.expect("configuration reloaded");
    let file = std::fs::read_to_string(home.path(USER_CONFIG)).unwrap();
    assert!(file.contains("mcp__git__push") && !file.contains("mcp__git__log"), "{file}");
    home.leave(terminal);
}
