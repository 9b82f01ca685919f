//! OpenAI's responses.

use serde_json::{Value, json};
use wharf_testkit::modeld::{Answer, ModelApiFormat, Say, Stop};

use crate::client::{ask, conversation, saying, stream, text, types};
use crate::start;

const FORMAT: ModelApiFormat = ModelApiFormat::Responses;

/// A request that wants to see the thinking and to bring it back.
fn thoughtful(items: &Value) -> Value {
    let mut request = conversation(FORMAT, items);
    request["store"] = json!(false);
    request["include"] = json!(["reasoning.encrypted_content"]);
    request["reasoning"] = json!({ "effort": "low", "summary": "auto" });
    request
}

#[test]
fn a_text_is_streamed_in_numbered_events() {
    let modeld = start([Answer::text("Hello there, you")]);
    let events = stream(&modeld, FORMAT, &saying(FORMAT, "hi"));
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(types(&events), expected);
    assert!(events.iter().enumerate().all(|(index, event)| event["sequence_number"] == index));
    assert_eq!(text(&events, "response.output_text.delta", "/delta"), "Hello there, you");
    let last = &events[9]["response"];
    assert_eq!((&last["status"], &last["usage"]["total_tokens"]), (&json!("completed"), &json!(120)));
    assert_eq!(last["output"][0], events[8]["item"]);
}

#[test]
fn thinking_and_calls_are_items() {
    let answer = Answer::default()
        .with_block(Say::Thinking("I should look".to_owned()))
        .with_block(Say::call("look", json!({ "at": "the sea" })))
        .with_block(Say::Unknown(json!({ "type": "future_item", "id": "x" })));
    let modeld = start([answer.clone(), answer]);
    let request = thoughtful(&json!([{ "role": "user", "content": "hi" }]));
    let events = stream(&modeld, FORMAT, &request);
    assert_eq!(text(&events, "response.reasoning_summary_text.delta", "/delta"), "I should look");
    assert_eq!(text(&events, "response.function_call_arguments.delta", "/delta"), r#"{"at":"the sea"}"#);
    assert!(types(&events).contains(&"response.reasoning_summary_part.added"));
    let output = events.last().unwrap()["response"]["output"].clone();
    let kinds: Vec<&str> = output.as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "function_call", "future_item"]);
    assert!(output[0]["encrypted_content"].is_string());
    let plain = ask(&modeld, FORMAT, &saying(FORMAT, "hi")).json();
    assert_eq!((plain["output"][0].get("encrypted_content"), &plain["output"][0]["summary"]), (None, &json!([])));
}

#[test]
fn what_it_said_can_be_said_again_and_nothing_else() {
    let first = Answer::default().with_block(Say::Thinking("hm".to_owned())).with_block(Say::call("look", json!({})));
    let modeld = start([first, Answer::text("done")]);
    let user = json!({ "role": "user", "content": "hi" });
    let said = ask(&modeld, FORMAT, &thoughtful(&json!([user]))).json()["output"].clone();
    let (thought, call) = (&said[0], &said[1]);
    let output = json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "a ship" });
    let (mut changed, mut bare) = (thought.clone(), thought.clone());
    changed["encrypted_content"] = json!("x");
    bare["encrypted_content"] = Value::Null;
    for (items, expected) in [
        (json!([user, changed, call, output]), "could not be verified"),
        (json!([user, bare, call, output]), "not found. Items are not persisted"),
        (json!([user, call, output]), "without its required 'reasoning' item"),
        (json!([user, call, output, thought]), "without its required following item"),
        (json!([user, thought, call]), "No tool output found for function call call_"),
        (json!([user, output]), "No tool call found for function call output"),
    ] {
        let refusal = ask(&modeld, FORMAT, &thoughtful(&items));
        assert!(refusal.status >= 400 && refusal.message().contains(expected), "{expected}: {refusal:?}");
    }
    let answer = ask(&modeld, FORMAT, &thoughtful(&json!([user, thought, call, output]))).json();
    assert_eq!(answer["output"][0]["content"][0]["text"], "done");
}

#[test]
fn each_stop_has_its_words() {
    for (stop, status, details) in [
        (Stop::EndTurn, "completed", Value::Null),
        (Stop::ToolUse, "completed", Value::Null),
        (Stop::MaxTokens, "incomplete", json!({ "reason": "max_output_tokens" })),
        (Stop::Refusal, "incomplete", json!({ "reason": "content_filter" })),
    ] {
        let modeld = start([Answer { stop: Some(stop), ..Answer::text("x") }]);
        let events = stream(&modeld, FORMAT, &saying(FORMAT, "hi"));
        let last = events.last().unwrap();
        assert_eq!(last["type"], format!("response.{status}"));
        assert_eq!((&last["response"]["status"], &last["response"]["incomplete_details"]), (&json!(status), &details));
    }
}
