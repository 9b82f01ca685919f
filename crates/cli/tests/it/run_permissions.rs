//! U2: permissions of `wharf run`: questions at a terminal, flags, and the end of a run with refused calls.

use serde_json::json;
use wharf_testkit::modeld::Answer;
use wharf_testkit::pty::Terminal;

use crate::run::Stage;
use crate::support::working;

fn echo_then(text: &str) -> [Answer; 2] {
    [Answer::call("echo", json!({"text": "ahoy"})), Answer::text(text)]
}

#[test]
fn allow_flag_permits_the_matching_tools_in_this_run() {
    for pattern in ["demo.echo", "demo.*", "d*.ec?o"] {
        let stage = Stage::with(&working(), echo_then("It said ahoy."));
        let ran = stage.run(&["run", "--allow", "demo.add", "--allow", pattern, "say ahoy"]);
        assert!(ran.code == Some(0) && ran.stderr.contains("→ ok"), "{pattern}: {ran:?}");
        assert!(!ran.stderr.contains("refused"), "{ran:?}");
        stage.model.push_answer(Answer::call("echo", json!({"text": "ahoy"})));
        stage.model.push_answer(Answer::text("No."));
        assert!(stage.run(&["run", "say ahoy"]).stderr.contains("→ error"), "the flag holds for one run");
    }
}

#[test]
fn allow_read_only_permits_tools_that_declare_it() {
    let call = |tool: &str| [Answer::call(tool, json!({"text": "ahoy"})), Answer::text("Done.")];
    for (tool, outcome) in [("echo", "→ ok"), ("crash", "needs permission")] {
        let ran = Stage::with(&working(), call(tool)).run(&["run", "--allow-read-only", "do it"]);
        assert!(ran.stderr.contains(outcome), "{tool}: {ran:?}");
    }
}

#[test]
fn deny_rule_overrides_allow_flags() {
    let stage = Stage::with(&working(), echo_then("I may not."));
    let rules = json!([{ "tool": "mcp__demo__echo", "action": "deny" }]);
    let config = json!({ "mcpServers": { "demo": working() }, "permissions": rules });
    std::fs::write(stage.home.configure(&json!({})), config.to_string()).unwrap();
    let ran = stage.run(&["run", "--allow", "demo.*", "--allow-read-only", "say ahoy"]);
    assert!(ran.stderr.contains("→ error") && ran.stderr.contains("denied"), "{ran:?}");
}

#[test]
fn allow_flag_with_an_unknown_server_is_an_error() {
    let stage = Stage::with(&working(), []);
    for (pattern, hint) in [("dmo.*", "did you mean `demo`?"), ("echo", "SERVER.TOOL")] {
        let ran = stage.run(&["run", "--allow", pattern, "say ahoy"]);
        assert!(ran.code == Some(2) && ran.stderr.contains(hint), "{ran:?}");
    }
}

/// G8.
#[test]
fn allow_flag_that_matches_no_tool_is_a_warning() {
    let stage = Stage::with(&working(), [Answer::text("Done.")]);
    stage.home.run_ok(&["tools", "demo"]);
    let ran = stage.run(&["run", "--settle", "20", "--allow", "demo.ecko", "--allow", "demo.ec?o", "say ahoy"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warning = "warning: --allow demo.ecko matches no tool of demo; did you mean `echo`?";
    assert!(ran.stderr.contains(warning) && !ran.stderr.contains("demo.ec?o matches"), "{ran:?}");
}

#[test]
fn refused_tools_and_their_flag_are_named_at_the_end() {
    let stage = Stage::with(&working(), echo_then("I may not."));
    let ran = stage.run(&["run", "say ahoy"]);
    assert!(ran.stderr.contains("demo.echo. To allow: wharf run --allow demo.echo"), "{ran:?}");
    assert!(stage.model.requests()[1].results()[0].text.contains("Do not repeat the call"), "{ran:?}");
    let again = || Answer::call("echo", json!({"text": "ahoy"}));
    let turns = (0..6).map(|_| again()).chain([Answer::text("Nobody lets me.")]);
    let stage = Stage::with(&working(), turns);
    let ran = stage.run(&["run", "--json", "say ahoy"]);
    let ended: serde_json::Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((ran.code, &ended["ending"], &ended["refused"]), (Some(1), &json!("looping"), &json!(["demo.echo"])));
    assert_eq!(ended["text"], "Nobody lets me.", "the model answers without tools");
    assert!(ended["error"].to_string().contains("--allow demo.echo"), "{ended}");
}

#[test]
fn run_asks_at_a_terminal() {
    for (answer, outcome) in [("y", "→ ok"), ("n", "→ error")] {
        let stage = Stage::with(&working(), echo_then("That is all."));
        let mut terminal = Terminal::start(&stage.command(&["run", "say ahoy"]));
        terminal.expect("wants to call echo");
        terminal.answer("Allow the call?", answer);
        terminal.expect(outcome);
        terminal.expect("That is all.");
        let ended = terminal.end();
        assert_eq!(ended.code, Some(0), "{}", ended.shown);
        assert!(!ended.shown.contains("nobody could be asked"), "{}", ended.shown);
    }
}
