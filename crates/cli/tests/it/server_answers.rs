//! Answers of servers that carry more than text: embedded resources, and errors with code and data (F6, F7).

use serde_json::{Value, json};
use wharf_testkit::modeld::Answer;
use wharf_testkit::test_home::TestHome;

use crate::run::Stage;
use crate::shell_server::write_shell_server;
use crate::support::assert_harmless;

/// The text of the embedded resource.
const EMBEDDED: &str = "# Tides\nHigh at noon.\n";

/// Writes a server with the tool `look` that answers with the member `"result": …` or `"error": …`, and returns its
/// entry.
fn server(home: &TestHome, member: &str, value: &Value) -> Value {
    let list = r#"answer '{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}'"#;
    let methods = [("tools/list", list), ("tools/call", r#"member "$(cat "$1")""#)];
    let script = write_shell_server(home, "answering.sh", &methods);
    let file = home.write("answer.json", &format!("\"{member}\":{value}"));
    json!({ "command": "sh", "args": [script, file], "trust": true, "env": { "API_TOKEN": "hush-hush-token" } })
}

fn with_answer(member: &str, value: &Value) -> TestHome {
    let home = TestHome::new();
    home.configure(&json!({ "harbour": server(&home, member, value) }));
    home
}

fn refusal() -> Value {
    let data = json!({ "field": "path", "hint": "use hush-hush-token\u{202e}", "allowed": ["/a", "/b"] });
    json!({ "code": -32602, "message": "no such path", "data": data })
}

#[test]
fn text_of_an_embedded_resource_is_shown_and_saved() {
    let resource = json!({ "uri": "note://tides", "mimeType": "text/markdown", "text": EMBEDDED });
    let home = with_answer("result", &json!({ "content": [{ "type": "resource", "resource": resource }] }));
    let called = home.run_line("call harbour look");
    assert_eq!(called.code, Some(0), "{called:?}");
    assert!(called.stdout.contains("note://tides") && called.stdout.contains("High at noon.\n"), "{called:?}");
    let document = home.run_line("call harbour look --json").json();
    assert!(document["output"].as_str().unwrap().contains(EMBEDDED), "{document}");
    let document = home.run_line("call harbour look --json --save files").json();
    let saved = document["saved"][0].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(saved).unwrap(), EMBEDDED);
    assert!(document["output"].as_str().unwrap().contains(saved), "{document}");
}

#[test]
fn error_of_a_server_keeps_code_and_data_in_text_and_json() {
    let home = with_answer("error", &refusal());
    let failed = home.run_line("call harbour look");
    assert_eq!(failed.code, Some(6), "{failed:?}");
    assert!(failed.stderr.contains("(code -32602)") && failed.stderr.contains(r#"data: {"#), "{failed:?}");
    assert!(failed.stderr.contains(r#""allowed":["/a","/b"]"#), "{failed:?}");
    assert!(!failed.stderr.contains("hush-hush-token"), "{failed:?}");
    assert_harmless(&failed.stderr);
    let failed = home.run_line("call harbour look --json");
    let error = &failed.json()["error"];
    assert_eq!((&error["code"], &error["data"]["field"]), (&json!(-32602), &json!("path")), "{error}");
    assert!(!failed.stdout.contains("hush-hush-token"), "{failed:?}");
}

#[test]
fn error_of_a_server_reaches_the_model_with_its_data() {
    let stage = Stage::among(&json!({}), [Answer::call("look", json!({})), Answer::text("I see.")]);
    stage.home.configure(&json!({ "harbour": server(&stage.home, "error", &refusal()) }));
    let ran = stage.run(&["run", "look"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = &stage.model.requests()[1].results()[0].text;
    assert!(told.contains("-32602") && told.contains(r#""allowed":["/a","/b"]"#), "{told}");
    assert!(!told.contains("hush-hush-token") && !told.contains('\u{202e}'), "{told}");
}
