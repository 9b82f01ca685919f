//! The REPL at a terminal and through a pipe, against a model API that says what a script tells it to.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use wharf_testkit::modeld::{Answer, AnswerFailure};
use wharf_testkit::pty::Terminal;
use wharf_testkit::repl::{self, PROMPT, exit_repl, wait_for_state};
use wharf_testkit::test_home::{CommandOutput, run_with_input};
use wharf_testkit::transport_faults::Refused;

use crate::run::Stage;
use crate::signals::send;
use crate::support::{WHARF, named_pipe, shell, working};

/// What is said of a message that has to wait.
const WAITS: &str = "queued until the current run finishes";

/// Starts the REPL and waits for its prompt.
#[track_caller]
fn terminal(stage: &Stage) -> Terminal {
    repl::start(&stage.command(&[]))
}

/// Types a line and waits until the next one can be typed.
fn line(terminal: &mut Terminal, text: &str) {
    terminal.line(text);
    terminal.expect(text);
    terminal.expect(PROMPT);
}

/// Runs a script.
fn piped(stage: &Stage, script: &str) -> CommandOutput {
    run_with_input(stage.command(&[]), script)
}

/// A pipe with a name at which somebody waits for a line.
pub struct Gate {
    path: PathBuf,
    /// Held, so that neither end waits for the other.
    ends: File,
}

impl Gate {
    pub fn new(path: PathBuf) -> Self {
        named_pipe(&path);
        let ends = File::options().read(true).write(true).open(&path).unwrap();
        Self { path, ends }
    }

    /// Lets the one through who waits.
    pub fn say(&mut self, text: &str) {
        self.ends.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// A server that works once somebody lets it.
    pub fn server(&self) -> Value {
        shell(&format!("read line < {}; exec {WHARF} demo-server --stdio", self.path.display()))
    }
}

/// A home with a server that does not start before its gate is opened. A message that mentions something of it is not
/// said before, however long that takes.
fn starting(turns: impl IntoIterator<Item = Answer>) -> (Stage, Gate) {
    let stage = Stage::among(&json!({}), turns);
    let gate = Gate::new(stage.home.path("gate"));
    stage.home.configure(&json!({ "slow": gate.server() }));
    (stage, gate)
}

#[test]
fn queued_input_is_processed_in_order() {
    let (stage, mut gate) = starting(["One.", "Two.", "Three."].map(Answer::text));
    let mut terminal = terminal(&stage);
    line(&mut terminal, "say it first about @slow:demo://greeting");
    for text in ["say it second", "/clear", "say it third"] {
        line(&mut terminal, text);
    }
    gate.say("go");
    for text in ["One.", "Two.", "started a new conversation", "Three."] {
        terminal.expect(text);
    }
    for (number, expected) in [(1, "first"), (2, "first second"), (3, "third")] {
        let body = stage.model.expect_request(number).body.to_string();
        let said: Vec<&str> =
            ["first", "second", "third"].into_iter().filter(|word| body.contains(&format!("say it {word}"))).collect();
        assert_eq!(said.join(" "), expected, "{number}");
    }
    assert_eq!(exit_repl(terminal).matches(WAITS).count(), 2);
}

#[test]
fn ctrl_c_drops_queued_messages() {
    let (stage, mut gate) = starting([Answer::text("Well.")]);
    let mut terminal = terminal(&stage);
    line(&mut terminal, "delete the branch of @slow:demo://greeting");
    line(&mut terminal, "and the other one");
    terminal.control('c');
    terminal.expect("(2 queued messages dropped)");
    line(&mut terminal, "and everything of @slow:demo://greeting");
    terminal.line("/cancel");
    terminal.expect("(1 queued message dropped)");
    terminal.line("/cancel");
    terminal.expect("nothing to cancel");
    gate.say("go");
    terminal.line("say hello");
    terminal.expect("Well.");
    let said = stage.model.expect_request(1).body["messages"].to_string();
    assert!(said.contains("say hello") && !said.contains("branch") && !said.contains("everything"), "{said}");
    exit_repl(terminal);
}

#[test]
fn ctrl_c_at_a_prompt_declines_and_drops_nothing() {
    let (stage, mut gate) = starting([Answer::text("Well.")]);
    let mut terminal = terminal(&stage);
    line(&mut terminal, "explain @slow:demo://greeting");
    stage.home.write("project/.mcp.json", &json!({"mcpServers": {"theirs": working()}}).to_string());
    repl::wait_for_question(&mut terminal, "Approve theirs?");
    terminal.control('c');
    terminal.expect("theirs was not approved.");
    gate.say("go");
    terminal.expect("Well.");
    assert!(!exit_repl(terminal).contains(" dropped)"));
}

#[test]
fn clear_takes_effect_after_the_current_run() {
    let stage = Stage::among(&json!({}), [Answer::text("Never.").held_at("gate", 0), Answer::text("Hello.")]);
    let mut terminal = terminal(&stage);
    terminal.line("take your time");
    stage.model.expect_request(1);
    line(&mut terminal, "and hurry");
    terminal.line("/clear");
    terminal.expect("runs after the current run finishes");
    terminal.control('c');
    terminal.expect("(1 queued message dropped)");
    terminal.expect("cancelled");
    terminal.expect("started a new conversation");
    terminal.line("say hello");
    terminal.expect("Hello.");
    let body = stage.model.expect_request(2).body.to_string();
    assert!(!body.contains("take your time") && !body.contains("and hurry"), "{body}");
    exit_repl(terminal);
}

#[test]
fn pending_secret_delays_only_its_users() {
    let stage = Stage::among(&json!({}), [Answer::text("At last.")]);
    let (mut key, mut token) = (Gate::new(stage.home.path("key")), Gate::new(stage.home.path("token")));
    let mut locked = working();
    locked["env"] = json!({"TOKEN": "${secret:token}"});
    let provider =
        json!({"format": "anthropic", "baseUrl": stage.model.url(), "apiKey": "${secret:key}", "model": "m"});
    let program = format!("read line < {}/{{name}}; echo $line", stage.home.root().display());
    let settings = json!({
        "secretCommand": ["sh", "-c", program],
        "model": "own",
        "providers": {"own": provider},
        "mcpServers": {"open": working(), "locked": locked},
    });
    stage.home.write("home/.config/wharf/config.json", &settings.to_string());
    let mut terminal = terminal(&stage);
    terminal.expect("2 servers · own/m");
    wait_for_state(&mut terminal, "open", "ready");
    wait_for_state(&mut terminal, "locked", "connecting");
    terminal.line("/mcp connect locked");
    terminal.expect("the server's secrets are still being looked up");
    line(&mut terminal, "say what @locked:demo://greeting means");
    token.say("t-1");
    wait_for_state(&mut terminal, "locked", "ready");
    assert!(stage.model.requests().is_empty());
    key.say("k-1");
    terminal.expect("At last.");
    let said = stage.model.expect_request(1).body["messages"].to_string();
    assert!(said.contains("> Ahoy"), "{said}");
    exit_repl(terminal);
}

#[test]
fn model_configured_during_session_is_used() {
    let stage = Stage::among(&json!({}), [Answer::text("Here I am.")]);
    let mut command = stage.command(&[]);
    for variable in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"] {
        command.env_remove(variable);
    }
    let mut terminal = Terminal::start(&command);
    terminal.expect("no model");
    terminal.line("are you there?");
    terminal.expect("no API key is set");
    let provider = json!({"format": "anthropic", "baseUrl": stage.model.url(), "apiKey": "k-1", "model": "m"});
    let settings = json!({"model": "own", "providers": {"own": provider}, "mcpServers": {}});
    stage.home.write("home/.config/wharf/config.json", &settings.to_string());
    terminal.line("/mcp reload");
    terminal.expect("configuration reloaded");
    terminal.line("/model");
    terminal.expect("own/m");
    terminal.line("are you there now?");
    terminal.expect("Here I am.");
    exit_repl(terminal);
}

#[test]
fn failure_after_an_edit_is_reported_again() {
    let lost = |path: &str| json!({ "lost": {"command": path} });
    let stage = Stage::among(&lost("/nowhere/one"), []);
    let mut terminal = terminal(&stage);
    terminal.expect("MCP server `lost` unavailable");
    stage.home.configure(&lost("/nowhere/two"));
    terminal.expect("changed lost");
    terminal.expect("MCP server `lost` unavailable");
    terminal.expect("/nowhere/two");
    exit_repl(terminal);
}

#[test]
fn piped_session_exit_code_reflects_the_failure() {
    let nobody = Refused::bind().unwrap();
    let web = json!({ "web": {"url": format!("http://{}/mcp", nobody.address()), "lazy": true} });
    for (script, turns, code, told) in [
        ("hello\n", vec![Answer::text("Well.")], 0, ""),
        ("/mcp connect nope\nhello\n", vec![Answer::text("Well.")], 2, "no server named `nope`"),
        ("hello\n", vec![Answer::fail(AnswerFailure::Status(401, None))], 4, "ANTHROPIC_API_KEY"),
        ("hello\nagain\n", vec![Answer::fail(AnswerFailure::Status(400, None)), Answer::text("Well.")], 1, "400"),
        ("/mcp auth web\ny\n", vec![Answer::text("Why?")], 4, "wharf auth web"),
        ("/model antropic/x\n", vec![], 2, "unknown provider `antropic`"),
    ] {
        let stage = Stage::among(&web, turns);
        let ran = piped(&stage, script);
        assert!(ran.code == Some(code) && ran.stderr.contains(told), "{script}: {ran:?}");
    }
}

#[test]
fn named_model_must_be_available() {
    let stage = Stage::among(&json!({}), []);
    let ran = stage.run(&["--model", "openai/"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut command = stage.command(&["--model", "openai/x"]);
    let ran = CommandOutput::from(command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL").output().unwrap());
    assert!(ran.code == Some(2) && ran.stderr.contains("set OPENAI_API_KEY"), "{ran:?}");
}

/// A window that is closed in the middle of an answer.
#[test]
fn signal_preserves_the_partial_response() {
    for signal in ["TERM", "HUP"] {
        let half = Answer::text("Half of it.\n\nAnd not the rest.").held_at("gate", 4);
        let stage = Stage::among(&json!({}), [half, Answer::text("Yes.")]);
        let mut terminal = terminal(&stage);
        terminal.line("tell me");
        terminal.expect("Half of it.");
        send(signal, terminal.pid());
        assert_eq!(terminal.end().code, Some(130));
        assert_eq!(stage.run(&["run", "--resume", "go on"]).code, Some(0));
        let body = stage.model.expect_request(2).body.to_string();
        assert!(body.contains("Half of it.") && body.contains("go on"), "{signal}: {body}");
    }
}
