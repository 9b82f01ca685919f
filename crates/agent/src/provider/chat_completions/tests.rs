use std::sync::Arc;

use super::*;
use crate::conversation::{Conversation, ConversationTurn, ResultBlock, TurnRole};
use crate::provider::event::replay;
use crate::provider::fixtures::{self, call, failure, image_result, provider, raw, reasoning_block, result, tools};
use crate::provider::{ApiFormat, CompletionRequest, ModelError, ReasoningEffort, ToolChoice};

const SOURCE: &str = "chat 127.0.0.1:8080 small";

fn decode_events(events: &[&str]) -> Result<Vec<ModelEvent>, ModelError> {
    replay(ChatDecoder::new(SOURCE.into()), events)
}

#[test]
fn text_and_reasoning_deltas_precede_complete_blocks() {
    let events = decode_events(&[
        r#"{"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}"#,
        r#"{"id":"c1","choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}"#,
        r#"{"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":""}},{"index":1,"delta":{"content":"no"}}]}"#,
        r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"Hel"}}],"new":[1]}"#,
        r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"lo"}}]}"#,
        r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}"#,
        "[DONE]",
    ]);
    assert_eq!(
        events.unwrap(),
        [
            ModelEvent::ThinkingDelta("Hm.".into()),
            ModelEvent::TextDelta("Hel".into()),
            ModelEvent::TextDelta("lo".into()),
            ModelEvent::BlockDone(reasoning_block(SOURCE, r#"{"reasoning_content":"Hm."}"#)),
            ModelEvent::BlockDone(TurnBlock::Text("Hello".into())),
            ModelEvent::Usage { input: 10, output: 3, cached: 4 },
            ModelEvent::Done { stop: StopReason::EndTurn },
        ]
    );
}

#[test]
fn interleaved_tool_calls_are_separated() {
    let begun = |index, id: &str, name: &str| ModelEvent::ToolCallBegun { index, id: id.into(), name: name.into() };
    let more = |index, json: &str| ModelEvent::ToolCallDelta { index, json: json.into() };
    let events = decode_events(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"add","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"sub","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"add","arguments":":1}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
    ]);
    assert_eq!(
        events.unwrap(),
        [
            begun(0, "a", "add"),
            more(0, r#"{"x""#),
            begun(1, "b", "sub"),
            more(1, "{}"),
            more(0, ":1}"),
            ModelEvent::BlockDone(call("a", "add", r#"{"x":1}"#)),
            ModelEvent::BlockDone(call("b", "sub", "{}")),
            ModelEvent::Done { stop: StopReason::ToolCalls },
        ]
    );
}

#[test]
fn missing_call_indices_and_ids_are_assigned() {
    let events = decode_events(&[
        r#"{"id":"c7","choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"add","arguments":"{}"}},{"id":"b","function":{"name":"sub"}}]}}]}"#,
        r#"{"id":"c7","choices":[{"delta":{"tool_calls":[{"index":2,"function":{"name":"mul"}}]},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]);
    let events = events.unwrap();
    let blocks: Vec<&ModelEvent> = events.iter().filter(|event| matches!(event, ModelEvent::BlockDone(_))).collect();
    let expected =
        [call("a", "add", "{}"), call("b", "sub", "{}"), call("c7_2", "mul", "{}")].map(ModelEvent::BlockDone);
    assert_eq!(blocks, expected.iter().collect::<Vec<_>>());
    assert_eq!(events.last(), Some(&ModelEvent::Done { stop: StopReason::ToolCalls }));
}

#[test]
fn finish_reasons_are_mapped_and_required_for_done() {
    for (reason, expected) in [
        ("stop", StopReason::EndTurn),
        ("tool_calls", StopReason::ToolCalls),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::Refused),
        ("new", StopReason::Other("new".into())),
    ] {
        let event = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
        assert_eq!(decode_events(&[&event]).unwrap(), [ModelEvent::Done { stop: expected }]);
    }
    let events = decode_events(&[
        r#"{"choices":[{"delta":{"refusal":"I will not."}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(events.unwrap().last(), Some(&ModelEvent::Done { stop: StopReason::Refused }));
    assert_eq!(
        decode_events(&[r#"{"choices":[{"delta":{"content":"x"}}]}"#]).unwrap(),
        [ModelEvent::TextDelta("x".into())]
    );
}

#[test]
fn error_and_malformed_events_are_errors() {
    let error = decode_events(&[r#"{"error":{"message":"Slow down","code":"rate_limit_exceeded"}}"#]).unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("Slow down"), "{error}");
    let error = decode_events(&[r#"{"error":{"message":"too long","type":"exceed_context_size_error","code":400}}"#])
        .unwrap_err();
    assert!(error.exceeds_context() && !error.is_retryable(), "{error}");
    for event in ["", "[]", "done", r#"{"choices":7}"#] {
        assert!(matches!(decode_events(&[event]), Err(ModelError::Unreadable(_))), "{event}");
    }
}

fn conversation() -> Conversation {
    let assistant = vec![
        reasoning_block(SOURCE, r#"{"reasoning_content":"?"}"#),
        TurnBlock::Unknown { provider: "anthropic api.anthropic.com small".into(), raw: raw("{}") },
        TurnBlock::Text("Well.".into()),
        call("1", "add", r#"{"z":1}"#),
        call("2", "größe", "{}"),
    ];
    let text = |text: &str| ResultBlock::Text(text.into());
    let results = vec![result("1", vec![text("3"), image_result()]), failure("2", vec![text("no")])];
    let mut conversation = fixtures::conversation(assistant, results);
    let blocks = vec![reasoning_block(SOURCE, r#"{"reasoning_content":"!"}"#), TurnBlock::Text("Done.".into())];
    conversation.turns.push(ConversationTurn { role: TurnRole::Assistant, blocks });
    conversation
}

#[test]
fn request_encoding_is_complete() {
    let (conversation, tools) = (conversation(), tools(ApiFormat::ChatCompletions));
    let tool_choice = ToolChoice::Tool("add");
    let request = CompletionRequest {
        conversation: &conversation,
        tools: &tools,
        tool_choice,
        effort: Some(ReasoningEffort::Low),
    };
    let text = encode_request(&provider(ApiFormat::ChatCompletions, "http://127.0.0.1:8080"), &request).unwrap();
    let alias = crate::provider::definitions::tool_alias("größe").into_owned();
    let calls = json!([
        {"id": "1", "type": "function", "function": {"name": "add", "arguments": "{\"z\":1}"}},
        {"id": "2", "type": "function", "function": {"name": alias, "arguments": "{}"}},
    ]);
    let function = json!({"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}});
    let expected = json!({
        "model": "small", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 4096,
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "add"},
            {"role": "assistant", "content": "Well.", "reasoning_content": "?", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "1", "content": "3\n[image, shown below]"},
            {"role": "tool", "tool_call_id": "2", "content": "The tool failed: no"},
            {"role": "user", "content": [
                {"type": "text", "text": "Images from the result of call 1:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                {"type": "text", "text": "and now?"},
            ]},
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "reasoning_effort": "low",
    });
    assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), expected);
}

#[test]
fn max_completion_tokens_is_sent_to_openai_only() {
    let conversation = Conversation::default();
    let tools = Arc::default();
    let request =
        CompletionRequest { conversation: &conversation, tools: &tools, tool_choice: ToolChoice::Auto, effort: None };
    for (base, member) in [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://notopenai.com/v1", "max_tokens"),
        ("http://127.0.0.1:11434", "max_tokens"),
    ] {
        let text = encode_request(&provider(ApiFormat::ChatCompletions, base), &request).unwrap();
        let value: Value = serde_json::from_slice(&text).unwrap();
        let limits = ["max_tokens", "max_completion_tokens"].map(|name| value.get(name).is_some().then_some(name));
        assert_eq!(limits.into_iter().flatten().collect::<Vec<_>>(), [member], "{base}");
    }
}
