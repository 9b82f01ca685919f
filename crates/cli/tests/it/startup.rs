//! F2: the model gets its first request although one server is broken and another one is slow.

use std::process::Stdio;

use serde_json::json;
use wharf_testkit::modeld::{Answer, Recorded};
use wharf_testkit::repl::{exit_repl, start, wait_for_state};
use wharf_testkit::test_home::{CommandOutput, run_with_input};

use crate::repl::Gate;
use crate::run::Stage;
use crate::support::{boom, working};

/// A home with a good server, a broken one, and a slow one that starts when its gate is opened.
fn mixed_servers(turns: impl IntoIterator<Item = Answer>) -> (Stage, Gate) {
    let stage = Stage::among(&json!({}), turns);
    let gate = Gate::new(stage.home.path("gate"));
    let mut good = working();
    good["trust"] = true.into();
    stage.home.configure(&json!({ "good": good, "broken": boom(), "slow": gate.server() }));
    (stage, gate)
}

#[track_caller]
fn assert_offers(request: &Recorded, slow: bool) {
    let names = request.tool_names();
    let offers = |server: &str| names.iter().any(|name| name.starts_with(&format!("mcp__{server}__")));
    assert_eq!((offers("good"), offers("broken"), offers("slow")), (true, false, slow), "{names:?}");
}

#[test]
fn run_requests_the_model_before_a_slow_server_is_ready() {
    let call = Answer::call("mcp__good__echo", json!({"text": "ahoy"})).held_at("first", 0);
    let (stage, mut gate) = mixed_servers([call, Answer::text("It said ahoy.")]);
    let mut command = stage.command(&["run", "say ahoy"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert_offers(&stage.model.expect_request(1), false);
    gate.say("go");
    stage.model.open_gate("first");
    let ran: CommandOutput = child.wait_with_output().unwrap().into();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "It said ahoy.\n"), "{ran:?}");
    assert!(ran.stderr.contains("broken: ") && ran.stderr.contains("slow: still starting"), "{ran:?}");
    assert!(ran.stderr.contains("--settle TIME"), "{ran:?}");
}

#[test]
fn settle_waits_for_a_slow_server() {
    let (stage, mut gate) = mixed_servers([Answer::text("Ahoy.")]);
    gate.say("go");
    let ran = stage.run(&["run", "--settle", "60", "say ahoy"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_offers(&stage.model.expect_request(1), true);
}

#[test]
fn repl_requests_the_model_before_a_slow_server_is_ready_and_adds_its_tools_later() {
    let (stage, mut gate) = mixed_servers(["One.", "Two."].map(Answer::text));
    let mut terminal = start(&stage.command(&[]));
    terminal.line("say it");
    assert_offers(&stage.model.expect_request(1), false);
    terminal.expect("One.");
    gate.say("go");
    wait_for_state(&mut terminal, "slow", "ready");
    terminal.line("say it again");
    assert_offers(&stage.model.expect_request(2), true);
    terminal.expect("Two.");
    exit_repl(terminal);
}

/// The slow server never starts.
#[test]
fn piped_input_does_not_wait_for_a_slow_server() {
    let (stage, _gate) = mixed_servers([Answer::text("Ahoy.")]);
    let ran = run_with_input(stage.command(&[]), "/help\nsay ahoy\n");
    assert!(ran.code == Some(0) && ran.stdout.contains("/permissions") && ran.stdout.contains("Ahoy."), "{ran:?}");
    assert_offers(&stage.model.expect_request(1), false);
}
