//! `wharf run`: one task for the agent, against a model API that says what a script tells it to.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command};

use serde_json::{Value, json};
use wharf_testkit::modeld::{Answer, AnswerFailure, Modeld, Say, Script, ScriptedToolResult};
use wharf_testkit::oracle::poll_until;
use wharf_testkit::pty::PATIENCE;
use wharf_testkit::test_home::{CommandOutput, TestHome, run_with_input};
use wharf_testkit::transport_faults::Refused;

use crate::signals::send;
use crate::support::{WHARF, shell, working};

/// A home with a demo server, and a model that plays a script.
pub struct Stage {
    pub home: TestHome,
    pub model: Modeld,
}

impl Stage {
    /// The server's tools are allowed without asking.
    fn trusting(turns: impl IntoIterator<Item = Answer>) -> Self {
        let mut server = working();
        server["trust"] = true.into();
        Self::with(&server, turns)
    }

    pub fn with(server: &Value, turns: impl IntoIterator<Item = Answer>) -> Self {
        Self::among(&json!({ "demo": server }), turns)
    }

    /// With these servers and no other.
    pub fn among(servers: &Value, turns: impl IntoIterator<Item = Answer>) -> Self {
        Self { home: TestHome::with_servers(servers), model: Modeld::start(Script::from_turns(turns)).unwrap() }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(arguments);
        command.envs(self.model_variables());
        command
    }

    /// The variables that lead to the model.
    pub fn model_variables(&self) -> [(&'static str, String); 4] {
        let (url, key) = (self.model.url(), "k-1".to_owned());
        [
            ("ANTHROPIC_BASE_URL", url.clone()),
            ("OPENAI_BASE_URL", url),
            ("ANTHROPIC_API_KEY", key.clone()),
            ("OPENAI_API_KEY", key),
        ]
    }

    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.command(arguments).output().unwrap().into()
    }

    /// The same with a text to read.
    fn fed(&self, arguments: &[&str], text: &str) -> CommandOutput {
        run_with_input(self.command(arguments), text)
    }
}

/// The documents of a run with `--json`.
fn events(stdout: &str) -> Vec<Value> {
    let event = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    let events: Vec<Value> = stdout.lines().map(event).collect();
    assert!(events.iter().all(|event| event["schema"] == 1), "{stdout}");
    events
}

fn echo_then(text: &str) -> [Answer; 2] {
    [Answer::call("echo", json!({"text": "ahoy"})), Answer::text(text)]
}

#[test]
fn run_uses_server_tools_in_every_api_format() {
    for model in ["anthropic", "openai", "openai-chat"] {
        let stage = Stage::trusting(echo_then("It said *ahoy*.\u{1b}[31m"));
        let ran = stage.run(&["run", "--model", model, "say", "ahoy"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "It said *ahoy*.\\u{1b}[31m\n"), "{model}: {ran:?}");
        assert!(ran.stderr.contains("▸ demo.echo {\"text\":\"ahoy\"} → ok "), "{ran:?}");
        assert!(
            ran.stderr.contains(&format!("{model}/")) && ran.stderr.contains("2 requests, 200 input tokens"),
            "{ran:?}"
        );
        assert_eq!(stage.model.refusals(), [""; 0], "{model}");
        let requests = stage.model.requests();
        assert!(requests[0].tool_names().contains(&"mcp__demo__echo"), "{:?}", requests[0].tool_names());
        assert!(requests[0].body.to_string().contains("say ahoy"), "{model}");
        assert_eq!(requests[1].results(), [ScriptedToolResult { is_error: false, text: "ahoy".to_owned() }], "{model}");
    }
}

#[test]
fn every_json_event_is_one_line() {
    let call = Answer::default()
        .with_block(Say::Thinking("hm".to_owned()))
        .with_block(Say::call("echo", json!({"text": "ahoy"})));
    let stage = Stage::trusting([call, Answer::text("Done it.")]);
    let ran = stage.run(&["run", "--json", "say ahoy"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events = events(&ran.stdout);
    let mut names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    names.dedup();
    let expected =
        ["begun", "asking", "thinking", "usage", "tool_begun", "tool_ended", "asking", "text", "usage", "ended"];
    assert_eq!(names, expected, "{}", ran.stdout);
    let of = |name: &str| events.iter().find(|event| event["event"] == name).unwrap();
    assert_eq!(
        (&of("begun")["model"], &of("begun")["servers"]),
        (&json!("anthropic/claude-sonnet-5"), &json!(["demo"]))
    );
    let begun = of("tool_begun");
    let expected = json!(["mcp__demo__echo", "demo", "echo", {"text": "ahoy"}]);
    assert_eq!(json!([begun["tool"], begun["server"], begun["name"], begun["arguments"]]), expected);
    assert_eq!((&of("tool_ended")["id"], &of("tool_ended")["is_error"]), (&begun["id"], &json!(false)));
    let ended = of("ended");
    assert_eq!((&ended["ending"], &ended["text"], &ended["error"]), (&json!("done"), &json!("Done it."), &Value::Null));
    assert_eq!(ended["usage"], json!({"requests": 2, "input": 200, "output": 40, "cached": 0}));
}

/// A server of the user's own starts elsewhere, and learns by roots which project it is used in.
#[test]
fn user_server_gets_the_project_as_root() {
    let stage = Stage::trusting([Answer::call("show_roots", json!({})), Answer::text("Done.")]);
    let ran = stage.run(&["run", "where am I?"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let project = stage.home.path("project").display().to_string();
    let results = stage.model.requests()[1].results();
    assert!(results.len() == 1 && results[0].text.contains(&project), "{results:?}");
}

#[test]
fn prompting_call_is_denied_and_the_rule_named() {
    let stage = Stage::with(&working(), echo_then("I may not."));
    let ran = stage.run(&["run", "say ahoy"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "I may not.\n"), "{ran:?}");
    let rule = r#"{"tool":"mcp__demo__echo","action":"allow"}"#;
    assert!(ran.stderr.contains("→ error") && ran.stderr.contains(rule), "{ran:?}");
    let told = stage.model.requests()[1].results();
    assert!(told.len() == 1 && told[0].is_error && told[0].text.contains(rule), "{told:?}");
    let stage = Stage::with(&working(), echo_then("I may."));
    let ran = stage.run(&["run", "--dangerously-skip-permissions", "say ahoy"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("→ ok"), "{ran:?}");
}

/// A run whose call lasts, followed until it has been sent.
fn lasting(stage: &Stage, trace: &str) -> Child {
    let mut child = stage.command(&["run", "--json", "--debug", "--trace", trace, "wait"]).spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"tools/call\"") {
        line.clear();
        assert_ne!(talk.read_line(&mut line).unwrap(), 0, "it ended early");
    }
    // Whoever stops reading would keep the child from writing.
    std::thread::spawn(move || while talk.read_line(&mut String::new()).is_ok_and(|count| count > 0) {});
    child
}

#[test]
fn interrupt_cancels_the_call_on_the_server() {
    let stage = Stage::trusting([Answer::call("slow", json!({"seconds": 60, "steps": 1}))]);
    let trace = stage.home.path("trace.jsonl");
    let child = lasting(&stage, trace.to_str().unwrap());
    send("INT", child.id());
    let ran = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let events = events(&ran.stdout);
    let ended = events.iter().find(|event| event["event"] == "ended").unwrap();
    assert_eq!(ended["ending"], "cancelled", "{}", ran.stdout);
    let trace = std::fs::read_to_string(trace).unwrap();
    assert!(trace.contains("\"notifications/cancelled\""), "{trace}");
}

/// What an interrupt cuts is saved as far as it came.
#[test]
fn interrupt_preserves_the_partial_response() {
    let stage =
        Stage::trusting([Answer::text("Half of it, and not the rest.").held_at("gate", 4), Answer::text("Yes.")]);
    let mut child = stage.command(&["run", "--json", "tell me"]).spawn().unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains(r#""event":"text""#) {
        line.clear();
        assert_ne!(told.read_line(&mut line).unwrap(), 0, "it ended early");
    }
    let said = serde_json::from_str::<Value>(&line).unwrap()["text"].as_str().unwrap().to_owned();
    send("INT", child.id());
    let ran = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(stage.run(&["run", "--resume", "go on"]).code, Some(0));
    let body = stage.model.requests()[1].body.to_string();
    assert!(body.contains(said.trim()) && body.contains("go on"), "{said}: {body}");
}

/// A server that writes down that it was started, and then works.
fn noted(noted: &std::path::Path) -> Value {
    let mut server = shell(&format!("echo started >> {}; exec {WHARF} demo-server --stdio", noted.display()));
    server["lazy"] = true.into();
    server["trust"] = true.into();
    server
}

/// L4: the first of two parallel calls was answered when the process was killed.
#[test]
fn resume_after_a_kill_keeps_the_result_of_an_answered_call() {
    let calls = Answer::default()
        .with_block(Say::call("echo", json!({"text": "ahoy"})))
        .with_block(Say::call("slow", json!({"seconds": 600, "steps": 1})));
    let stage = Stage::trusting([calls, Answer::text("Yes.")]);
    let mut child = stage.command(&["run", "--json", "do both"]).spawn().unwrap();
    let saved = || {
        let folder = stage.home.path("home/.local/state/wharf/conversations");
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default()).collect::<String>()
    };
    assert!(poll_until(PATIENCE, || saved().contains(r#"{"schema":2,"result":"#)), "{}", saved());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(stage.run(&["run", "--resume", "go on"]).code, Some(0));
    let results = stage.model.requests()[1].results();
    assert_eq!(results[0], ScriptedToolResult { is_error: false, text: "ahoy".to_owned() });
    assert!(results[1].text.contains("may or may not have executed"), "{results:?}");
}

/// F4: the model sees the tools of a lazy server that was never started.
#[test]
fn unlisted_lazy_server_is_listed_once() {
    let turns =
        [Answer::call("mcp__lazy__echo", json!({"text": "ahoy"})), Answer::text("Ahoy."), Answer::text("Again.")];
    let stage = Stage::among(&json!({}), turns);
    let starts = stage.home.path("starts");
    stage.home.configure(&json!({ "lazy": noted(&starts) }));
    let ran = stage.run(&["run", "say ahoy"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("→ ok"), "{ran:?}");
    assert_eq!(stage.run(&["run", "say nothing"]).code, Some(0));
    assert!(stage.model.expect_request(3).tool_names().contains(&"mcp__lazy__echo"));
    assert_eq!(std::fs::read_to_string(&starts).unwrap().lines().count(), 1, "its tools are known now");
}

#[test]
fn test_and_probe_teach_the_tools_of_a_lazy_server() {
    for command in [&["test", "lazy"][..], &["list", "--probe"]] {
        let stage = Stage::among(&json!({}), [Answer::text("Hello.")]);
        let starts = stage.home.path("starts");
        stage.home.configure(&json!({ "lazy": noted(&starts) }));
        assert_eq!(stage.home.run(command).code, Some(0));
        assert_eq!(stage.run(&["run", "hello"]).code, Some(0));
        assert!(stage.model.expect_request(1).tool_names().contains(&"mcp__lazy__echo"), "{command:?}");
        assert_eq!(std::fs::read_to_string(&starts).unwrap().lines().count(), 1, "{command:?}");
    }
}

#[test]
fn resume_does_not_start_unused_servers() {
    let stage = Stage::among(&json!({}), [Answer::text("Hello."), Answer::text("Again.")]);
    let starts = stage.home.path("starts");
    stage.home.configure(&json!({ "lazy": noted(&starts) }));
    // A server whose tools are not known starts once.
    assert_eq!(stage.home.run(["tools", "lazy"]).code, Some(0));
    std::fs::remove_file(&starts).unwrap();
    for arguments in [&["run", "first words"][..], &["run", "--resume", "second words"]] {
        assert_eq!(stage.run(arguments).code, Some(0));
    }
    assert!(!starts.exists());
}

#[test]
fn resume_starts_used_servers_concurrently() {
    let call = Answer::call("mcp__lazy__echo", json!({"text": "ahoy"}));
    let stage = Stage::among(&json!({}), [call, Answer::text("It said ahoy."), Answer::text("Again.")]);
    let starts = stage.home.path("starts");
    let started = || std::fs::read_to_string(&starts).unwrap().lines().count();
    stage.home.configure(&json!({ "dead": working(), "lazy": noted(&starts) }));
    // Its tools have to be known before the model calls one of them.
    assert_eq!(stage.home.run(["tools", "lazy"]).code, Some(0));
    let ran = stage.run(&["run", "say ahoy"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("→ ok"), "{ran:?}");
    let before = started();
    stage.home.configure(&json!({ "dead": shell("exec sleep 60"), "lazy": noted(&starts) }));
    let ran = stage.run(&["run", "--resume", "--settle", "2", "again"]);
    assert_eq!((ran.code, started()), (Some(0), before + 1), "{ran:?}");
}

#[test]
fn missing_key_starts_nothing_and_has_setup_hints() {
    let telling = json!({ "command": "/bin/sh", "args": ["-c", "touch \"$HOME/started\""] });
    let home = TestHome::with_servers(&json!({ "demo": telling }));
    let ran = home.run(["run", "say ahoy"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(!home.path("home/started").exists(), "a server was started");
    home.run(["tools"]);
    assert!(home.path("home/started").exists(), "the server was not started");
    for hint in ["ANTHROPIC_API_KEY", "work without a model", "--model ollama/MODEL", "providers"] {
        assert!(ran.stderr.contains(hint), "{ran:?}");
    }
    let ran = home.run(["run", "--json", "say ahoy"]);
    assert_eq!((ran.code, &ran.json()["error"]["kind"]), (Some(2), &json!("usage")), "{ran:?}");
}

#[test]
fn run_failures_have_distinct_exit_codes() {
    let nobody = Refused::bind().unwrap();
    let stage = Stage::trusting([]);
    let mut command = stage.command(&["run", "say ahoy"]);
    let ran = CommandOutput::from(
        command.env("ANTHROPIC_BASE_URL", format!("http://{}", nobody.address())).output().unwrap(),
    );
    assert!(ran.code == Some(3) && ran.stderr.contains("cannot reach the model API"), "{ran:?}");
    for (turns, arguments, code, word) in [
        (vec![Answer::fail(AnswerFailure::Status(401, None))], &["run", "x"][..], 4, "ANTHROPIC_API_KEY"),
        (vec![Answer::fail(AnswerFailure::Status(400, None))], &["run", "x"], 1, "400"),
        (echo_then("never").to_vec(), &["run", "--max-requests", "1", "x"], 1, "--max-requests"),
        (vec![], &["run", " "], 2, "empty task"),
        (vec![], &["run", "--server", "dmo", "x"], 2, "did you mean `demo`?"),
    ] {
        let ran = Stage::trusting(turns).run(arguments);
        assert!(ran.code == Some(code) && ran.stderr.contains(word), "{arguments:?}: {ran:?}");
        assert!(!ran.stderr.contains("k-1"), "{ran:?}");
    }
}

#[test]
fn model_retry_is_reported() {
    let stage =
        || Stage::trusting([Answer::fail(AnswerFailure::Status(529, Some("0".to_owned()))), Answer::text("done")]);
    let because = "model API returned HTTP 529: the script answers 529 (overloaded_error)";
    for (ran, when) in
        [(stage().run(&["run", "x"]), "; retrying in 0 ms"), (stage().fed(&[], "x\n"), ". Retrying in 0 ms")]
    {
        assert!(ran.stderr.contains(&format!("{because}{when}")), "{ran:?}");
        assert_eq!(ran.stdout, "done\n", "{ran:?}");
    }
    let ran = stage().run(&["run", "--json", "x"]);
    let told = json!({"schema": 1, "event": "waiting", "duration_ms": 0, "because": because});
    assert!(events(&ran.stdout).contains(&told), "{ran:?}");
}

#[test]
fn task_is_read_from_stdin_and_conversation_resumed() {
    let stage = Stage::trusting([Answer::text("Hello."), Answer::text("Again.")]);
    let ran = stage.fed(&["run", "-"], "first words\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{ran:?}");
    let ran = stage.run(&["run", "--resume", "second words"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Again.\n"), "{ran:?}");
    let told = stage.model.requests()[1].body.to_string();
    for words in ["first words", "Hello.", "second words"] {
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn running_wharf_handles_status_reload_and_cancel() {
    let stage = Stage::trusting([Answer::text("late").held_at("gate", 0)]);
    for command in ["reload", "cancel"] {
        let ran = stage.home.run([command]);
        assert!(ran.code == Some(3) && ran.stderr.contains("no wharf is running"), "{ran:?}");
    }
    let child = stage.command(&["run", "--json", "wait"]).spawn().unwrap();
    stage.model.expect_request(1);
    let asked = format!("asked the running wharf, process {}", child.id());
    let ran = stage.home.run(["status"]);
    assert!(ran.code == Some(0) && ran.stderr.contains(&asked) && ran.stdout.contains("✓ ready"), "{ran:?}");
    let (there, here) =
        (stage.home.run(["status", "demo", "--json"]), stage.home.run(["status", "--connect", "--json"]));
    assert!(there.stderr.contains(&asked) && !here.stderr.contains("asked"), "{there:?} {here:?}");
    let keys = |ran: &CommandOutput| ran.json()["items"][0].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&there), keys(&here));
    assert_eq!(there.json()["items"][0]["server_info"], here.json()["items"][0]["server_info"]);
    stage.home.configure(&json!({ "demo": {"command": "true", "enabled": false}, "more": working() }));
    let ran = stage.home.run(["reload"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "added more; removed demo\n"), "{ran:?}");
    assert_eq!(stage.home.run(["cancel"]).code, Some(0));
    let ran = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(events(&ran.stdout).last().unwrap()["ending"], "cancelled");
    assert_eq!(stage.home.run(["cancel"]).code, Some(3));
}
