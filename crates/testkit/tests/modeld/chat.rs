//! OpenAI's chat completions.

use serde_json::{Value, json};
use wharf_testkit::modeld::{Answer, ModelApiFormat, Say, Stop};

use crate::client::{ask, saying, stream, text};
use crate::start;

const FORMAT: ModelApiFormat = ModelApiFormat::ChatCompletions;

#[test]
fn a_text_is_streamed_in_chunks_with_usage_where_asked() {
    let modeld = start([Answer::text("Hello there, you"), Answer::text("again")]);
    let mut request = saying(FORMAT, "hi");
    let plain = stream(&modeld, FORMAT, &request);
    assert_eq!(plain[0]["choices"][0]["delta"], json!({ "role": "assistant", "content": "", "refusal": null }));
    assert_eq!(text(&plain, "", "/choices/0/delta/content"), "Hello there, you");
    let [.., finish, done] = plain.as_slice() else { panic!("{plain:?}") };
    assert_eq!(finish["choices"][0]["finish_reason"], "stop");
    assert_eq!((finish.get("usage"), done), (None, &json!("[DONE]")));
    request["stream"] = json!(true);
    request["stream_options"] = json!({ "include_usage": true });
    let counted = stream(&modeld, FORMAT, &request);
    let usage = &counted[counted.len() - 2];
    assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &json!(120)));
    assert_eq!(counted[0].get("usage"), Some(&Value::Null));
}

#[test]
fn calls_have_an_index_and_thinking_is_beside_the_text() {
    let answer = Answer::default()
        .with_block(Say::Thinking("I should look".to_owned()))
        .with_block(Say::call("look", json!({ "at": "the sea" })))
        .with_block(Say::call("wait", json!("{not json")));
    let modeld = start([answer.clone(), answer]);
    let events = stream(&modeld, FORMAT, &saying(FORMAT, "hi"));
    assert_eq!(events[0]["choices"][0]["delta"]["content"], Value::Null);
    assert_eq!(text(&events, "", "/choices/0/delta/reasoning_content"), "I should look");
    let message = ask(&modeld, FORMAT, &saying(FORMAT, "hi")).json()["choices"][0]["message"].clone();
    assert_eq!(message["reasoning_content"], "I should look");
    for (index, name) in ["look", "wait"].into_iter().enumerate() {
        let calls = || events.iter().filter_map(|event| event.pointer("/choices/0/delta/tool_calls/0"));
        let own: Vec<&Value> = calls().filter(|call| call["index"] == index).collect();
        assert_eq!((&own[0]["type"], &own[0]["function"]["name"]), (&json!("function"), &json!(name)));
        assert!(own[0]["id"].is_string() && own[1].get("id").is_none());
        let arguments: String = own.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
        assert_eq!(message["tool_calls"][index]["function"]["arguments"], arguments);
    }
    assert_eq!(message["tool_calls"][1]["function"]["arguments"], "{not json");
}

#[test]
fn each_stop_has_its_word() {
    for (stop, expected) in [
        (Stop::EndTurn, "stop"),
        (Stop::ToolUse, "tool_calls"),
        (Stop::MaxTokens, "length"),
        (Stop::Refusal, "content_filter"),
    ] {
        let modeld = start([Answer { stop: Some(stop), ..Answer::text("x") }]);
        assert_eq!(ask(&modeld, FORMAT, &saying(FORMAT, "hi")).json()["choices"][0]["finish_reason"], expected);
    }
}
