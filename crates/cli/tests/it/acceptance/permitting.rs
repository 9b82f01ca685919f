//! Nothing is called without a yes: a person's, or a rule's.

use serde_json::json;
use wharf_testkit::modeld::{Answer, Script};
use wharf_testkit::repl::wait_for_state;

use super::agent_home::{AgentHome, all_allowed, answer, demo};

/// A model that wants one thing, and then says this whatever came of it.
fn wanting(last: &str) -> AgentHome {
    let home =
        AgentHome::new(Script::from_turns([Answer::call("echo", json!({"text": "a\u{202e}hoy"})), Answer::text(last)]));
    let entry = home.marked(demo());
    home.servers(json!({"demo": entry}))
}

#[test]
fn call_runs_after_approval() {
    let home = wanting("It said ahoy.");
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Say something.");
    let question = terminal.expect("Allow the call?");
    for part in ["echo", "demo", "\"text\"", "\\u{202e}"] {
        assert!(question.contains(part), "{part}: {question}");
    }
    answer(&mut terminal, "[r]eason", "y");
    terminal.expect("It said ahoy.");
    home.tells(2, &[Ok("hoy")]);
    home.leave(terminal);
}

#[test]
fn denied_call_returns_an_error_to_the_model() {
    let home = wanting("Then not.");
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Say something.");
    answer(&mut terminal, "Allow the call?", "r not while the tide is out");
    terminal.expect("Then not.");
    home.tells(2, &[Err("not while the tide is out")]);
    home.leave(terminal);
}

#[test]
fn allow_rule_skips_the_prompt() {
    let home = wanting("It said ahoy.").with("permissions", all_allowed());
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Say something.");
    terminal.expect("It said ahoy.");
    home.tells(2, &[Ok("hoy")]);
    let shown = home.leave(terminal);
    assert!(!shown.contains("Allow the call?"), "{shown}");
}

#[test]
fn always_answer_is_saved_as_a_rule() {
    let home = wanting("It said ahoy.");
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Say something.");
    answer(&mut terminal, "Allow the call?", "a");
    terminal.expect("It said ahoy.");
    home.tells(2, &[Ok("hoy")]);
    home.leave(terminal);
    let file = home.read("home/.config/wharf/config.json");
    assert!(file.contains("mcp__demo__echo"), "{file}");
    for answer in [Answer::call("echo", json!({"text": "again"})), Answer::text("And again.")] {
        home.model.push_answer(answer);
    }
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Say it again.");
    terminal.expect("And again.");
    home.tells(4, &[Ok("again")]);
    let shown = home.leave(terminal);
    assert!(!shown.contains("Allow the call?"), "{shown}");
}
