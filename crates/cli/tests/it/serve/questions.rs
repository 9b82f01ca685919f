//! `wharf questions` and `wharf answer`: a person at a shell answers for a client.

use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::oracle::poll_until;
use wharf_testkit::test_home::{TestHome, USER_CONFIG};

use super::client::PipeClient;
use super::home;

const PATIENCE: Duration = Duration::from_secs(20);

/// A home whose rules ask about every call, which waits this long for an answer.
fn asking_home(wait: Option<u64>) -> TestHome {
    let (home, _) = home(&json!([{"tool": "mcp__*", "action": "ask"}]));
    let mut config: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
    config["mcpServers"]["demo"]["env"]["API_KEY"] = "sesame-open-4711".into();
    if let Some(wait) = wait {
        config["serve"] = json!({ "waitForAnswerMs": wait });
    }
    home.write(USER_CONFIG, &config.to_string());
    home
}

/// Waits until one question is open and returns it.
fn open_question(home: &TestHome) -> Value {
    let mut found = Value::Null;
    let is_asked = || {
        found = home.run_ok(&["questions", "--json"]).json()["items"][0].clone();
        !found.is_null()
    };
    assert!(poll_until(PATIENCE, is_asked), "no question");
    found
}

fn send_call(client: &mut PipeClient, tool: &str, arguments: &Value) -> u64 {
    client.send_request("tools/call", &json!({"name": tool, "arguments": arguments}))
}

fn text(response: &Value) -> String {
    response["result"]["content"][0]["text"].as_str().map_or_else(|| response.to_string(), str::to_owned)
}

#[test]
fn waiting_call_is_listed_and_answered_for_its_session_alone() {
    let home = asking_home(Some(300_000));
    let start = || PipeClient::initialized(&home, "project", &["--server", "demo"]);
    let (mut ada, mut bob) = (start(), start());
    let call = send_call(&mut ada, "demo__echo", &json!({"text": "ahoy"}));
    let question = open_question(&home);
    let id = question["id"].as_str().unwrap();
    assert_eq!((&question["kind"], &question["client"]), (&json!("permission"), &json!("test")), "{question}");
    assert_eq!((&question["server"], &question["target"]), (&json!("demo"), &json!("demo__echo")), "{question}");
    assert!(question["project"].as_str().unwrap().ends_with("project"), "{question}");
    assert!(question["principal"].as_str().unwrap().starts_with("session-"), "{question}");
    assert!(question["timeLeftMs"].as_u64().unwrap() > 200_000, "{question}");
    let completed = home.run_ok(&["complete-names", "--", "answer"]);
    assert_eq!(completed.stdout.trim(), id);
    let answered = home.run(["answer", id, "session"]);
    assert!(answered.code == Some(0) && answered.stderr.contains(id), "{answered:?}");
    assert_eq!(text(&ada.response(call)), "ahoy");
    assert_eq!(ada.call("demo__echo", &json!({"text": "again"})), "again", "the answer holds for the session");
    let call = send_call(&mut bob, "demo__echo", &json!({"text": "ahoy"}));
    let question = open_question(&home);
    home.run_ok(&["answer", question["id"].as_str().unwrap(), "deny", "--json"]);
    let refused = text(&bob.response(call));
    assert!(refused.contains("denied by the user"), "{refused}");
    let none = home.run(["questions"]);
    assert!(none.code == Some(0) && none.stdout.is_empty() && none.stderr.contains("No questions"), "{none:?}");
}

/// Arguments are a client's: they draw no lines, and secrets are masked.
#[test]
fn hostile_arguments_stay_in_their_place() {
    let home = asking_home(Some(300_000));
    let mut client = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    let hostile = "x\n4f9a1c  permission to call harmless\u{1b}[2J\u{202e} sesame-open-4711";
    let arguments = json!({"text": hostile, "password": "hunter2-hunter2"});
    let call = send_call(&mut client, "demo__echo", &arguments);
    let question = open_question(&home);
    let shown = home.run_ok(&["questions"]).stdout;
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
    assert!(!shown.contains("sesame-open-4711") && !shown.contains("hunter2"), "{shown}");
    assert_eq!(shown.lines().filter(|line| line.contains("permission to call")).count(), 2, "{shown}");
    let drawn = shown.lines().find(|line| line.contains("harmless")).unwrap();
    assert!(drawn.starts_with("  │ {"), "{shown}");
    home.run_ok(&["answer", question["id"].as_str().unwrap(), "deny"]);
    client.response(call);
}

#[test]
fn form_of_a_server_is_answered_at_a_shell() {
    let (home, _) = home(&super::allow_all());
    let start = || PipeClient::start(&home, "project", &["--server", "demo"]);
    let mut client = start().initialize(&json!({"elicitation": {}}));
    let call = send_call(&mut client, "demo__book_berth", &json!({}));
    let question = open_question(&home);
    let id = question["id"].as_str().unwrap();
    assert_eq!(question["kind"], "form", "{question}");
    let shown = home.run_ok(&["questions", id]).stdout;
    assert!(shown.contains("email") && shown.contains("FIELD=VALUE"), "{shown}");
    for (answer, complaint) in [("allow", "not an argument"), ("nights=many", "whole number"), ("fly=1", "no field")] {
        let refused = home.run(["answer", id, answer]);
        assert!(refused.code == Some(2) && refused.stderr.contains(complaint), "{answer}: {refused:?}");
    }
    home.run_ok(&["answer", id, "email=ada@harbour.example", "nights=3", "ship=Tern"]);
    let booked = text(&client.response(call));
    assert!(booked.contains("ada@harbour.example") && booked.contains("Tern"), "{booked}");
    let call = send_call(&mut client, "demo__book_berth", &json!({}));
    home.run_ok(&["answer", open_question(&home)["id"].as_str().unwrap(), "decline"]);
    client.response(call);
}

#[test]
fn call_is_refused_at_once_by_default_and_told_how_to_wait() {
    let home = asking_home(None);
    let mut client = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    let refused = client.call("demo__echo", &json!({"text": "ahoy"}));
    for part in ["mcp__demo__echo", "wharf questions", "serve.waitForAnswerMs"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
}

#[test]
fn profile_has_a_waiting_time_of_its_own() {
    let home = asking_home(Some(0));
    let mut config: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
    config["profiles"] = json!({"patient": {"waitForAnswerMs": 300_000}});
    home.write(USER_CONFIG, &config.to_string());
    let mut client = PipeClient::initialized(&home, "project", &["--profile", "patient", "--server", "demo"]);
    let call = send_call(&mut client, "demo__echo", &json!({"text": "ahoy"}));
    home.run_ok(&["answer", open_question(&home)["id"].as_str().unwrap(), "allow"]);
    assert_eq!(text(&client.response(call)), "ahoy");
}

#[test]
fn answers_without_a_question_are_refused() {
    let home = asking_home(Some(300_000));
    for words in [&["questions"][..], &["answer", "0a1b2c", "allow"]] {
        let none = home.run(words);
        assert!(none.code == Some(3) && none.stderr.contains("no gateway is running"), "{none:?}");
    }
    let mut client = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    let unknown = home.run(["answer", "0a1b2c", "allow"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("no question 0a1b2c is open"), "{unknown:?}");
    send_call(&mut client, "demo__echo", &json!({"text": "ahoy"}));
    let question = open_question(&home);
    let id = question["id"].as_str().unwrap();
    for (id, answer, complaint) in [("nonsense", "allow", id), (id, "yes", "allow, session or deny")] {
        let refused = home.run(["answer", id, answer]);
        assert!(refused.code == Some(2) && refused.stderr.contains(complaint), "{refused:?}");
    }
}
