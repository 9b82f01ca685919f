use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::conversation::{Conversation, ResultBlock};
use crate::provider::definitions::tool_alias;
use crate::provider::event::replay;
use crate::provider::fixtures::{self, failure, image_result, provider, raw, reasoning_block, result, tools};
use crate::provider::{ApiFormat, CompletionRequest, ModelError, ModelProvider, ReasoningEffort, ToolChoice};

const SOURCE: &str = "anthropic api.anthropic.com small";

fn decode_events(events: &[&str]) -> Result<Vec<ModelEvent>, ModelError> {
    replay(AnthropicDecoder::new(SOURCE.into()), events)
}

#[test]
fn text_deltas_precede_the_complete_block() {
    let events = decode_events(&[
        r#"{"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":10,"cache_read_input_tokens":90,"cache_creation_input_tokens":5,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"of_tomorrow","delta":7}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":12}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(
        events.unwrap(),
        [
            ModelEvent::TextDelta("Hel".into()),
            ModelEvent::TextDelta("lo".into()),
            ModelEvent::BlockDone(TurnBlock::Text("Hello".into())),
            ModelEvent::Usage { input: 105, output: 12, cached: 90 },
            ModelEvent::Done { stop: StopReason::EndTurn },
        ]
    );
}

#[test]
fn thinking_and_unknown_blocks_are_preserved_verbatim() {
    let events = decode_events(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm. "}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"ZW5j"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"s1","input":{},"n":1.50}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"q\":"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"x\"}"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
    ]);
    let provider = || SOURCE.to_owned();
    let thought = raw(r#"{"type":"thinking","thinking":"Hm. ","signature":"c2ln"}"#);
    let redacted = raw(r#"{"type":"redacted_thinking","data":"ZW5j"}"#);
    let searched = raw(r#"{"type":"server_tool_use","id":"s1","n":1.50,"input":{"q":"x"}}"#);
    assert_eq!(
        events.unwrap(),
        [
            ModelEvent::ThinkingDelta("Hm. ".into()),
            ModelEvent::BlockDone(TurnBlock::Thinking { provider: provider(), raw: thought }),
            ModelEvent::BlockDone(TurnBlock::Thinking { provider: provider(), raw: redacted }),
            ModelEvent::BlockDone(TurnBlock::Unknown { provider: provider(), raw: searched }),
        ]
    );
}

#[test]
fn interleaved_tool_calls_are_separated() {
    let events = decode_events(&[
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"add","input":{}}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"b","name":"sub"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"y\":"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    let call = |id: &str, name: &str, arguments: &str, malformed: Option<&str>| {
        let (id, name, malformed) = (id.to_owned(), name.to_owned(), malformed.map(str::to_owned));
        ModelEvent::BlockDone(TurnBlock::ToolCall { id, name, arguments: raw(arguments), malformed })
    };
    assert_eq!(
        events.unwrap(),
        [
            ModelEvent::ToolCallBegun { index: 1, id: "a".into(), name: "add".into() },
            ModelEvent::ToolCallBegun { index: 2, id: "b".into(), name: "sub".into() },
            ModelEvent::ToolCallDelta { index: 2, json: r#"{"y":"#.into() },
            ModelEvent::ToolCallDelta { index: 1, json: r#"{"x":1}"#.into() },
            call("a", "add", r#"{"x":1}"#, None),
            call("b", "sub", "{}", Some(r#"{"y":"#)),
            ModelEvent::Usage { input: 0, output: 0, cached: 0 },
            ModelEvent::Done { stop: StopReason::ToolCalls },
        ]
    );
}

#[test]
fn stop_reasons_are_mapped() {
    for (reason, expected) in [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("tool_use", StopReason::ToolCalls),
        ("max_tokens", StopReason::MaxTokens),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("refusal", StopReason::Refused),
        ("pause_turn", StopReason::Paused),
        ("new\u{1b}", StopReason::Other("new\\u{1b}".into())),
    ] {
        assert_eq!(stop_reason(Some(reason)), expected);
    }
}

#[test]
fn error_and_malformed_events_are_errors() {
    let error =
        decode_events(&[r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#]).unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert_eq!(error.to_string(), "model API failed during the response: Overloaded (overloaded_error)");
    for event in ["", "[]", "{", r#"{"type":"content_block_start","index":0}"#, r#"{"type":7}"#] {
        assert!(matches!(decode_events(&[event]), Err(ModelError::Unreadable(_))), "{event}");
    }
}

fn conversation() -> Conversation {
    let call = |id: &str, name: &str| fixtures::call(id, name, r#"{"z":1,"a":1.50}"#);
    let assistant = vec![
        reasoning_block(SOURCE, r#"{"type":"thinking","thinking":"?"}"#),
        reasoning_block("anthropic api.anthropic.com large", r#"{"type":"thinking","thinking":"!"}"#),
        TurnBlock::Text(" ".into()),
        call("1", "add"),
        call("2", "größe"),
        TurnBlock::Unknown { provider: SOURCE.into(), raw: raw(r#"{"type":"new","n":1.50}"#) },
    ];
    let results = vec![result("1", vec![ResultBlock::Text("3".into()), image_result()]), failure("2", vec![])];
    fixtures::conversation(assistant, results)
}

#[test]
fn request_encoding_is_complete() {
    let (conversation, tools) = (conversation(), tools(ApiFormat::Anthropic));
    let effort = Some(ReasoningEffort::High);
    let request =
        CompletionRequest { conversation: &conversation, tools: &tools, tool_choice: ToolChoice::Auto, effort };
    let text = encode_request(&provider(ApiFormat::Anthropic, "https://api.anthropic.com"), &request).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(r#""input":{"z":1,"a":1.50}"#) && text.contains(r#"{"type":"new","n":1.50}"#), "{text}");
    let value: Value = serde_json::from_str(&text).unwrap();
    let arguments = json!({"z": 1, "a": 1.5});
    let content = json!([
        {"type": "thinking", "thinking": "?"},
        {"type": "tool_use", "id": "1", "name": "add", "input": arguments},
        {"type": "tool_use", "id": "2", "name": tool_alias("größe"), "input": arguments},
        {"type": "new", "n": 1.5},
    ]);
    let source = json!({"type": "base64", "media_type": "image/png", "data": "aGk="});
    let results = json!([
        {"type": "tool_result", "tool_use_id": "1", "is_error": false,
            "content": [{"type": "text", "text": "3"}, {"type": "image", "source": source}]},
        {"type": "tool_result", "tool_use_id": "2", "is_error": true, "content": []},
        {"type": "text", "text": "and now?"},
    ]);
    let expected = json!({
        "model": "small", "max_tokens": 4096, "stream": true, "system": "be brief",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "add"}]},
            {"role": "assistant", "content": content},
            {"role": "user", "content": results},
        ],
        "tools": [{"name": "add", "description": "Adds.", "input_schema": {"type": "object", "properties": {}}}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "enabled", "budget_tokens": 2048},
    });
    assert_eq!(value, expected);
}

#[test]
fn thinking_is_requested_only_where_the_api_allows_it() {
    let provider = provider(ApiFormat::Anthropic, "http://127.0.0.1:1");
    let conversation = conversation();
    let fresh = Conversation { system: None, turns: conversation.turns[..1].to_vec() };
    for (conversation, tool_choice, expected) in [
        (&fresh, ToolChoice::Auto, true),
        (&fresh, ToolChoice::Any, false),
        (&fresh, ToolChoice::Tool("add"), false),
        // The reasoning is from another provider, so these calls have none before them.
        (&conversation, ToolChoice::Auto, false),
    ] {
        let request =
            CompletionRequest { conversation, tools: &Arc::default(), tool_choice, effort: Some(ReasoningEffort::Low) };
        let value: Value = serde_json::from_slice(&encode_request(&provider, &request).unwrap()).unwrap();
        assert_eq!(value.get("thinking").is_some(), expected, "{tool_choice:?}");
        assert!(value.get("tools").is_none() && value.get("tool_choice").is_none());
    }
}

#[test]
fn effort_encoding_depends_on_model_generation() {
    let conversation = conversation();
    let (auto, any) = (ToolChoice::Auto, ToolChoice::Any);
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    for (model, tool_choice, effort, thinking, output_config) in [
        ("claude-sonnet-5", auto, Some(ReasoningEffort::High), adaptive.clone(), json!({"effort": "high"})),
        ("claude-sonnet-5", any, Some(ReasoningEffort::Medium), json!(null), json!({"effort": "medium"})),
        ("claude-sonnet-5", auto, None, json!(null), json!(null)),
        // The calls have no reasoning before them, which does not matter to an adaptive model.
        ("claude-opus-4-6", auto, Some(ReasoningEffort::Low), adaptive, json!({"effort": "low"})),
        ("claude-haiku-4-5", auto, Some(ReasoningEffort::Low), json!(null), json!(null)),
    ] {
        let provider =
            ModelProvider { model: model.into(), ..provider(ApiFormat::Anthropic, "https://api.anthropic.com") };
        let request = CompletionRequest { conversation: &conversation, tools: &Arc::default(), tool_choice, effort };
        let value: Value = serde_json::from_slice(&encode_request(&provider, &request).unwrap()).unwrap();
        assert_eq!((&value["thinking"], &value["output_config"]), (&thinking, &output_config), "{model} {effort:?}");
    }
}
