//! Which answer comes, when, and what is kept of the question.

use std::io::{BufReader, Read as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::modeld::{Answer, ModelApiFormat, Modeld, Script, When};

use crate::client::{ask, conversation, open, receive, saying, tool};
use crate::start;

/// Long enough for what is on its way; whoever is too slow only sees less of what must not come.
const MOMENT: Duration = Duration::from_millis(100);

/// The text or the called tool of an answer, in whichever format it is.
fn gist(format: ModelApiFormat, answer: &Value) -> Value {
    let pointers = match format {
        ModelApiFormat::Anthropic => ["/content/0/text", "/content/0/name"],
        ModelApiFormat::ChatCompletions => {
            ["/choices/0/message/content", "/choices/0/message/tool_calls/0/function/name"]
        }
        ModelApiFormat::Responses => ["/output/0/content/0/text", "/output/0/name"],
    };
    let found = pointers.iter().find_map(|pointer| answer.pointer(pointer).filter(|value| !value.is_null()));
    found.cloned().unwrap_or_default()
}

#[test]
fn turns_are_used_up_in_order_and_tools_called_by_the_end_of_their_names() {
    for format in ModelApiFormat::ALL {
        let modeld = start([Answer::call("read_file", json!({})), Answer::text("two")]);
        let mut request = saying(format, "hi");
        request["tools"] = json!([tool(format, "mcp__fs__read_file", &json!({ "type": "object" }))]);
        assert_eq!(gist(format, &ask(&modeld, format, &request).json()), "mcp__fs__read_file");
        assert_eq!(gist(format, &ask(&modeld, format, &request).json()), "two");
        let over = ask(&modeld, format, &request);
        assert_eq!((over.status, over.message().as_str()), (400, "modeld: the script has no answer left"));
        modeld.push_answer(Answer::text("three"));
        assert_eq!(gist(format, &ask(&modeld, format, &request).json()), "three");
        assert_eq!(modeld.requests()[0].tool_names(), ["mcp__fs__read_file"]);
    }
}

#[test]
fn rules_go_before_turns_as_often_as_they_fit() {
    for format in ModelApiFormat::ALL {
        let script = Script::from_turns([Answer::text("turn")])
            .when(When::Text("ships".to_owned()), Answer::text("rule"))
            .when(When::ToolResult(String::new()), Answer::text("result"));
        let modeld = Modeld::start(script).unwrap();
        for (text, expected) in [("all ships", "rule"), ("all boats", "turn"), ("no ships", "rule")] {
            assert_eq!(gist(format, &ask(&modeld, format, &saying(format, text)).json()), expected);
        }
    }
}

#[test]
fn a_rule_sees_the_results_of_tools() {
    let script = Script::default().when(When::ToolResult("ship".to_owned()), Answer::text("seen"));
    let modeld = Modeld::start(script).unwrap();
    let call = json!({ "id": "1", "type": "function", "function": { "name": "look", "arguments": "{}" } });
    let messages = json!([
        { "role": "user", "content": "hi" },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "1", "content": "a ship" },
    ]);
    let format = ModelApiFormat::ChatCompletions;
    assert_eq!(gist(format, &ask(&modeld, format, &conversation(format, &messages)).json()), "seen");
}

#[test]
fn an_answer_waits_before_its_gate_and_the_question_is_known_by_then() {
    for format in ModelApiFormat::ALL {
        let modeld = start([Answer::text("late").held_at("g", 1)]);
        let mut request = saying(format, "hi");
        request["stream"] = json!(true);
        let mut stream = open(&modeld, format, &request);
        let recorded = modeld.expect_request(1);
        assert_eq!((recorded.format, &recorded.body, recorded.refusal.as_deref()), (format, &request, None));
        assert_eq!(recorded.header("authorization"), Some("Bearer sk-test"));
        let before = before_gate(&mut stream);
        assert!(!String::from_utf8_lossy(&before).contains("late"), "{format:?}");
        modeld.open_gate("g");
        let reply = receive(before.as_slice().chain(stream)).unwrap();
        assert!(reply.is_whole && reply.body.contains("late"), "{reply:?}");
    }
}

/// What comes while the gate is shut, which is not the end.
fn before_gate(stream: &mut BufReader<TcpStream>) -> Vec<u8> {
    let usual = stream.get_ref().read_timeout().unwrap();
    stream.get_ref().set_read_timeout(Some(MOMENT)).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect_err("nobody passes");
    stream.get_ref().set_read_timeout(usual).unwrap();
    bytes
}

#[test]
fn a_client_that_leaves_is_noticed() {
    let modeld = start([Answer::text("never").held_at("g", 1)]);
    let mut request = saying(ModelApiFormat::Anthropic, "hi");
    request["stream"] = json!(true);
    let stream = open(&modeld, ModelApiFormat::Anthropic, &request);
    modeld.expect_request(1);
    drop(stream);
    modeld.expect_disconnect(1);
}

#[test]
fn a_script_can_be_read() {
    let text = r#"{
        "turns": [{
            "blocks": [
                { "thinking": "t" },
                { "tool_call": { "name": "x", "arguments": { "a": 1 } } },
                { "unknown": { "type": "y" } }
            ],
            "stop": "tool_use",
            "usage": { "input": 5 },
            "pace": { "delta": 1, "write": 3, "hold": { "gate": "g" } },
            "fail": { "status": [429, "1"] }
        }, { "fail": "hang" }, { "fail": { "cut_after": 9 } }],
        "rules": [{ "when": { "tool_result": "x" }, "answer": { "blocks": [{ "text": "y" }] } }],
        "keyless": true
    }"#;
    let script: Script = serde_json::from_str(text).unwrap();
    assert_eq!((script.turns.len(), script.turns[0].usage.output), (3, 20));
    assert_eq!(script.rules[0].answer, Answer::text("y"));
}
