//! Anthropic's Messages.

use serde_json::{Value, json};
use wharf_testkit::modeld::{Answer, ModelApiFormat, Say, Stop, Usage};

use crate::client::{ask, conversation, saying, stream, text, types};
use crate::start;

const FORMAT: ModelApiFormat = ModelApiFormat::Anthropic;

#[test]
fn a_text_is_streamed_in_blocks() {
    let modeld = start([Answer {
        usage: Usage { input: 50, output: 7, cached: 40, reasoning: 0 },
        ..Answer::text("Hello there, you")
    }]);
    let events = stream(&modeld, FORMAT, &saying(FORMAT, "hi"));
    let expected = [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(types(&events), expected);
    let usage = &events[0]["message"]["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cache_read_input_tokens"]), (&json!(10), &json!(40)));
    assert_eq!(text(&events, "content_block_delta", "/delta/text"), "Hello there, you");
    assert_eq!(events[6]["delta"], json!({ "stop_reason": "end_turn", "stop_sequence": null }));
    assert_eq!(events[6]["usage"]["output_tokens"], 7);
}

#[test]
fn thinking_calls_and_unknown_blocks_come_in_order() {
    let answer = Answer::default()
        .with_block(Say::Thinking("I should look".to_owned()))
        .with_block(Say::Unknown(json!({ "type": "redacted_thinking", "data": "opaque" })))
        .with_block(Say::call("look", json!({ "at": "the sea" })))
        .with_block(Say::call("wait", json!({})));
    let modeld = start([answer.clone(), answer]);
    let events = stream(&modeld, FORMAT, &saying(FORMAT, "hi"));
    let begun: Vec<&Value> = events.iter().filter_map(|event| event.get("content_block")).collect();
    assert_eq!(begun[0], &json!({ "type": "thinking", "thinking": "", "signature": "" }));
    assert_eq!(begun[1]["data"], "opaque");
    assert_eq!((&begun[2]["name"], &begun[2]["input"]), (&json!("look"), &json!({})));
    let whole = ask(&modeld, FORMAT, &saying(FORMAT, "hi")).json();
    assert_eq!(whole["stop_reason"], "tool_use");
    let content = &whole["content"];
    assert_eq!(text(&events, "content_block_delta", "/delta/thinking"), content[0]["thinking"].as_str().unwrap());
    assert_eq!(text(&events, "content_block_delta", "/delta/signature"), content[0]["signature"].as_str().unwrap());
    let arguments: Vec<Value> = [2, 3].map(|index| arguments(&events, index)).to_vec();
    assert_eq!(arguments, [content[2]["input"].to_string(), String::new()].map(Value::from));
    assert_eq!(content[3]["input"], json!({}));
}

/// The pieces of one block's input.
fn arguments(events: &[Value], index: usize) -> Value {
    let own = events.iter().filter(|event| event["index"] == index);
    own.filter_map(|event| event["delta"]["partial_json"].as_str()).collect::<String>().into()
}

#[test]
fn what_it_said_can_be_said_again_and_nothing_else() {
    let first = Answer::default().with_block(Say::Thinking("hm".to_owned())).with_block(Say::call("look", json!({})));
    let modeld = start([first, Answer::text("done")]);
    let said = ask(&modeld, FORMAT, &saying(FORMAT, "hi")).json()["content"].clone();
    let result = json!({ "type": "tool_result", "tool_use_id": said[1]["id"], "content": "a ship" });
    let request = |said: &Value| {
        let mut body = conversation(
            FORMAT,
            &json!([
                { "role": "user", "content": "hi" },
                { "role": "assistant", "content": said },
                { "role": "user", "content": [result] },
            ]),
        );
        body["thinking"] = json!({ "type": "enabled", "budget_tokens": 1024 });
        body
    };
    let mut changed = said.clone();
    changed[0]["thinking"] = json!("hm!");
    for (said, expected) in [
        (changed, "messages.1.content.0: Invalid `signature` in `thinking` block"),
        (json!([said[1]]), "Expected `thinking` or `redacted_thinking`, but found `tool_use`"),
    ] {
        let refusal = ask(&modeld, FORMAT, &request(&said));
        assert!(refusal.status == 400 && refusal.message().contains(expected), "{refusal:?}");
    }
    assert_eq!(ask(&modeld, FORMAT, &request(&said)).json()["content"][0]["text"], "done");
    assert_eq!(modeld.refusals().len(), 2);
}

#[test]
fn each_stop_has_its_word() {
    for (stop, expected) in [
        (Stop::EndTurn, "end_turn"),
        (Stop::ToolUse, "tool_use"),
        (Stop::MaxTokens, "max_tokens"),
        (Stop::Refusal, "refusal"),
    ] {
        let modeld = start([Answer { stop: Some(stop), ..Answer::text("x") }]);
        assert_eq!(ask(&modeld, FORMAT, &saying(FORMAT, "hi")).json()["stop_reason"], expected);
    }
}
