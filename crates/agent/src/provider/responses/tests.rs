use serde_json::json;

use super::*;
use crate::conversation::{Conversation, ResultBlock};
use crate::provider::event::replay;
use crate::provider::fixtures::{self, call, failure, image_result, provider, raw, reasoning_block, tools};
use crate::provider::{ApiFormat, CompletionRequest, ModelError, ReasoningEffort, ToolChoice};

const SOURCE: &str = "responses api.openai.com small";

fn decode_events(events: &[&str]) -> Result<Vec<ModelEvent>, ModelError> {
    replay(ResponsesDecoder::new(SOURCE.into()), events)
}

#[test]
fn text_and_reasoning_deltas_precede_complete_blocks() {
    let reasoning = r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"ZW5j"}"#;
    let search = r#"{"id":"ws_1","type":"web_search_call","n":1.50}"#;
    let events = decode_events(&[
        r#"{"type":"response.created","response":{"id":"r1"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"Hm."}"#,
        &format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{reasoning}}}"#),
        &format!(r#"{{"type":"response.output_item.done","output_index":1,"item":{search}}}"#),
        r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"m1","type":"message","content":[]}}"#,
        r#"{"type":"response.output_text.delta","output_index":2,"delta":"Hel"}"#,
        r#"{"type":"response.output_text.delta","output_index":2,"delta":"lo"}"#,
        r#"{"type":"response.output_text.done","output_index":2,"text":"Hello"}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"message","content":[{"type":"output_text","text":"Hello"}]}}"#,
        r#"{"type":"response.of_tomorrow","delta":7}"#,
        r#"{"type":"response.completed","response":{"status":"completed","error":null,"incomplete_details":null,"output":[{"type":"message"}],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":3}}}"#,
    ]);
    assert_eq!(
        events.unwrap(),
        [
            ModelEvent::ThinkingDelta("Hm.".into()),
            ModelEvent::BlockDone(reasoning_block(SOURCE, reasoning)),
            ModelEvent::BlockDone(TurnBlock::Unknown { provider: SOURCE.into(), raw: raw(search) }),
            ModelEvent::TextDelta("Hel".into()),
            ModelEvent::TextDelta("lo".into()),
            ModelEvent::BlockDone(TurnBlock::Text("Hello".into())),
            ModelEvent::Usage { input: 10, output: 3, cached: 4 },
            ModelEvent::Done { stop: StopReason::EndTurn },
        ]
    );
}

#[test]
fn interleaved_tool_calls_are_separated() {
    let events = decode_events(&[
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f0","call_id":"a","name":"add","arguments":""}}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","id":"f1","call_id":"b","name":"sub","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"f1","delta":"{\"y\":"}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"f0","delta":"{\"x\":1}"}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"f9","delta":"lost"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f0","call_id":"a","name":"add","arguments":"{\"x\":1}"}}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","id":"f1","call_id":"b","name":"sub","arguments":"{\"y\":"}}"#,
        r#"{"type":"response.completed","response":{}}"#,
        "[DONE]",
    ]);
    let (id, name, malformed) = ("b".into(), "sub".into(), Some(r#"{"y":"#.into()));
    let broken = TurnBlock::ToolCall { id, name, arguments: raw("{}"), malformed };
    assert_eq!(
        events.unwrap(),
        [
            ModelEvent::ToolCallBegun { index: 0, id: "a".into(), name: "add".into() },
            ModelEvent::ToolCallBegun { index: 1, id: "b".into(), name: "sub".into() },
            ModelEvent::ToolCallDelta { index: 1, json: r#"{"y":"#.into() },
            ModelEvent::ToolCallDelta { index: 0, json: r#"{"x":1}"#.into() },
            ModelEvent::BlockDone(call("a", "add", r#"{"x":1}"#)),
            ModelEvent::BlockDone(broken),
            ModelEvent::Done { stop: StopReason::ToolCalls },
        ]
    );
}

#[test]
fn stop_reasons_are_mapped() {
    let refusal = r#"{"type":"message","content":[{"type":"refusal","refusal":"No."}]}"#;
    for (response, expected) in [
        ("{}".to_owned(), StopReason::EndTurn),
        (r#"{"incomplete_details":{"reason":"max_output_tokens"}}"#.to_owned(), StopReason::MaxTokens),
        (r#"{"incomplete_details":{"reason":"content_filter"}}"#.to_owned(), StopReason::Refused),
        (r#"{"incomplete_details":{"reason":"new"}}"#.to_owned(), StopReason::Other("new".into())),
        (format!(r#"{{"output":[{refusal}]}}"#), StopReason::Refused),
        (r#"{"output":[{"type":"function_call","call_id":"a","name":"add"}]}"#.to_owned(), StopReason::ToolCalls),
    ] {
        let event = format!(r#"{{"type":"response.incomplete","response":{response}}}"#);
        assert_eq!(decode_events(&[&event]).unwrap().last(), Some(&ModelEvent::Done { stop: expected }), "{response}");
    }
}

#[test]
fn error_and_malformed_events_are_errors() {
    for (event, expected, passes) in [
        (r#"{"type":"error","code":"rate_limit_exceeded","message":"Slow"}"#, "Slow (rate_limit_exceeded)", true),
        (r#"{"type":"error","error":{"type":"server_error","message":"Oh"}}"#, "Oh (server_error)", true),
        (r#"{"type":"error","message":"Oh"}"#, "Oh", false),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"Long"}}}"#,
            "Long (context_length_exceeded)",
            false,
        ),
        (r#"{"type":"response.failed","response":{}}"#, "no error message", false),
    ] {
        let error = decode_events(&[event]).unwrap_err();
        assert_eq!(error.to_string(), format!("model API failed during the response: {expected}"));
        assert_eq!(error.is_retryable(), passes, "{error}");
    }
    for event in ["", "[]", "{}", r#"{"type":"response.output_text.delta"}"#] {
        assert!(matches!(decode_events(&[event]), Err(ModelError::Unreadable(_))), "{event}");
    }
}

fn conversation() -> Conversation {
    let assistant = vec![
        reasoning_block(SOURCE, r#"{"type":"reasoning","id":"rs_1","encrypted_content":"ZW5j"}"#),
        reasoning_block(SOURCE, r#"{"type":"reasoning","id":"rs_2","encrypted_content":null}"#),
        reasoning_block("responses api.openai.com large", r#"{"type":"reasoning","encrypted_content":"eA=="}"#),
        TurnBlock::Text("Well.".into()),
        call("1", "add", r#"{"z":1}"#),
        TurnBlock::Unknown { provider: SOURCE.into(), raw: raw(r#"{"type":"new"}"#) },
    ];
    fixtures::conversation(assistant, vec![failure("1", vec![ResultBlock::Text("no".into()), image_result()])])
}

fn encode_json(base: &str, effort: Option<ReasoningEffort>, thoughts: ReasoningMode) -> Value {
    let (conversation, tools) = (conversation(), tools(ApiFormat::Responses));
    let request =
        CompletionRequest { conversation: &conversation, tools: &tools, tool_choice: ToolChoice::Any, effort };
    let text = encode_request(&provider(ApiFormat::Responses, base), &request, thoughts).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn request_encoding_is_complete() {
    let picture = json!({"type": "input_image", "image_url": "data:image/png;base64,aGk="});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let parameters = json!({"type": "object", "properties": {}});
    let expected = json!({
        "model": "small", "stream": true, "store": false, "max_output_tokens": 4096, "instructions": "be brief",
        "input": [
            {"type": "message", "role": "user", "content": [text("add")]},
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "ZW5j"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Well."}]},
            {"type": "function_call", "call_id": "1", "name": "add", "arguments": "{\"z\":1}"},
            {"type": "new"},
            {"type": "function_call_output", "call_id": "1", "output": [text("The tool failed:"), text("no"), picture]},
            {"type": "message", "role": "user", "content": [text("and now?")]},
        ],
        "tools": [{"type": "function", "name": "add", "description": "Adds.", "parameters": parameters, "strict": false}],
        "tool_choice": "required",
        "reasoning": {"effort": "medium", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    });
    assert_eq!(
        encode_json("https://api.openai.com/v1", Some(ReasoningEffort::Medium), ReasoningMode::GivenOut),
        expected
    );
}

#[test]
fn non_openai_hosts_get_images_after_the_results() {
    let value = encode_json("http://127.0.0.1:9", None, ReasoningMode::GivenOut);
    let input = value["input"].as_array().unwrap();
    let [.., output, message] = input.as_slice() else { panic!("{value}") };
    assert_eq!(output["output"], "The tool failed: no\n[image, shown below]");
    assert_eq!(message["content"][0]["text"], "Images from the result of call 1:");
    assert_eq!(message["content"][1]["image_url"], "data:image/png;base64,aGk=");
    assert_eq!(message["content"][2]["text"], "and now?");
    assert!(value.get("reasoning").is_none() && value.get("include").is_none());
    assert!(!value.to_string().contains("rs_1") && !value.to_string().contains(r#""new""#), "{value}");
}

#[test]
fn encrypted_reasoning_is_requested_where_supported() {
    let (openai, other, low) = ("https://api.openai.com", "http://127.0.0.1:9", Some(ReasoningEffort::Low));
    for (base, effort, thoughts, expected) in [
        (openai, None, ReasoningMode::GivenOut, true),
        (openai, low, ReasoningMode::GivenOut, true),
        (openai, None, ReasoningMode::LeftAlone, false),
        (other, None, ReasoningMode::GivenOut, false),
        (other, low, ReasoningMode::GivenOut, true),
        (other, low, ReasoningMode::LeftAlone, false),
    ] {
        let value = encode_json(base, effort, thoughts);
        let include = expected.then(|| json!(["reasoning.encrypted_content"]));
        assert_eq!(value.get("include"), include.as_ref(), "{base} {effort:?} {thoughts:?}");
    }
}
