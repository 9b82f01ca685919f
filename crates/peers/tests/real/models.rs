//! Our side of the three formats that model APIs speak, against an API of somebody else's making.
//!
//! It writes what it was sent in one form whatever the format: so each format is read by a parser that is not ours, and
//! what it has understood is the same for all of them.

use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use wharf_agent::{
    ApiFormat, CompletionRequest, Conversation, ConversationTurn, Model, ModelError, ModelEvent, ModelProvider,
    ModelToolDefinition, ReasoningEffort, ResultBlock, StopReason, ToolChoice, TurnBlock, TurnRole, encode_tools,
};
use wharf_net::{Net, NetOptions};
use wharf_spec::Secret;

use crate::peer::{installed, raw};

/// The key it takes.
const KEY: &str = "k-1";

const QUESTION: &str = "What is the sum?";
const THOUGHT: &str = "Adding, then saying so.";

/// The whole conversation of the first test.
const SAID: [&str; 7] = [
    "system: Be brief.",
    "user: What is the sum?",
    "assistant: Let me see.",
    r#"call call_1: add {"a":2,"b":40}"#,
    r#"call call_2: echo {"text":"ahoy"}"#,
    "tool call_1: 42",
    "tool call_2: ahoy",
];

const FORMATS: [(ApiFormat, &str, &str); 3] = [
    (ApiFormat::Anthropic, "claude-sonnet-4-5", "/v1/messages"),
    (ApiFormat::ChatCompletions, "gpt-5", "/v1/chat/completions"),
    (ApiFormat::Responses, "gpt-5", "/v1/responses"),
];

#[tokio::test]
async fn parallel_calls_with_reasoning_are_sent_back() {
    for (format, name, path) in FORMATS {
        let mut mock = Mock::start(&summing()).await;
        let model = mock.model(format, name, KEY).await;
        let mut conversation = asked(QUESTION);
        let first = ask(&model, &conversation).await.unwrap();
        assert_eq!((first.thought.as_str(), first.text.as_str()), (THOUGHT, "Let me see."), "{format}");
        assert_eq!(kinds(&first.blocks), ["thinking", "text", r#"add {"a":2,"b":40}"#, r#"echo {"text":"ahoy"}"#]);
        assert_eq!(first.stop, Some(StopReason::ToolCalls), "{format}");
        conversation.turns.push(ConversationTurn { role: TurnRole::Assistant, blocks: first.blocks });
        let results = vec![result("call_1", "42"), result("call_2", "ahoy")];
        conversation.turns.push(ConversationTurn { role: TurnRole::User, blocks: results });
        let second = ask(&model, &conversation).await.unwrap();
        assert_eq!((second.text.as_str(), second.stop), ("It is 42.", Some(StopReason::EndTurn)), "{format}");
        let [before, after] = <[Value; 2]>::try_from(mock.requests().await).unwrap();
        for (request, said) in [(before, &SAID[..2]), (after, &SAID)] {
            assert_eq!((&request["path"], &request["body"]["model"]), (&json!(path), &json!(name)));
            assert_eq!((&request["body"]["stream"], &request["body"]["max_tokens"]), (&json!(true), &json!(4096)));
            assert_eq!(told(&request), said, "{format}");
            assert_eq!(request["body"]["tools"], understood_tools(), "{format}");
        }
    }
}

#[tokio::test]
async fn api_errors_are_reported_verbatim() {
    let refusal = json!({"error": {"message": "no such model", "type": "not_found_error"}, "status": 404});
    let fixtures = json!([{"match": {"userMessage": QUESTION}, "response": refusal}]);
    for (format, name, _) in FORMATS {
        let mut mock = Mock::start(&fixtures).await;
        let error = ask(&mock.model(format, name, KEY).await, &asked(QUESTION)).await.unwrap_err();
        assert_eq!(error.to_string(), "model API returned HTTP 404: no such model (not_found_error)", "{format}");
        let error = ask(&mock.model(format, name, "k-2").await, &asked(QUESTION)).await.unwrap_err();
        assert!(matches!(error, ModelError::KeyRefused { .. }), "{format}: {error}");
        let statuses: Vec<u64> = mock.requests().await.iter().filter_map(status).collect();
        assert!(statuses.starts_with(&[404]) && !statuses.contains(&200), "{format}: {statuses:?}");
    }
}

#[tokio::test]
async fn rate_limited_request_is_retried() {
    let busy = json!({"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 0});
    let fixtures = json!([
        {"match": {"userMessage": QUESTION, "sequenceIndex": 0}, "response": busy},
        {"match": {"userMessage": QUESTION, "sequenceIndex": 1}, "response": {"content": "It is 42."}},
    ]);
    for (format, name, _) in FORMATS {
        let mut mock = Mock::start(&fixtures).await;
        let answer = ask(&mock.model(format, name, KEY).await, &asked(QUESTION)).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.stop), ("It is 42.", Some(StopReason::EndTurn)), "{format}");
        let requests = mock.requests().await;
        assert_eq!(requests.iter().filter_map(status).collect::<Vec<_>>(), [429, 200], "{format}");
    }
}

fn status(request: &Value) -> Option<u64> {
    request["response"]["status"].as_u64()
}

/// Calls two tools at once, and says a sentence when it has their results.
fn summing() -> Value {
    let calls = json!([
        {"id": "call_1", "name": "add", "arguments": r#"{"a":2,"b":40}"#},
        {"id": "call_2", "name": "echo", "arguments": r#"{"text":"ahoy"}"#},
    ]);
    let calling = json!({"reasoning": THOUGHT, "content": "Let me see.", "toolCalls": calls});
    json!([
        {"match": {"userMessage": QUESTION, "hasToolResult": false}, "response": calling},
        {"match": {"userMessage": QUESTION, "hasToolResult": true}, "response": {"content": "It is 42."}},
    ])
}

/// What was said in a request, as it was understood. Some formats have one message for what others have several.
fn told(request: &Value) -> Vec<String> {
    let messages = request["body"]["messages"].as_array().unwrap();
    messages.iter().flat_map(parts).collect()
}

fn parts(message: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let id = message["tool_call_id"].as_str().map(|id| format!(" {id}")).unwrap_or_default();
    let text = message["content"].as_str().map(|text| format!("{}{id}: {text}", word(&message["role"])));
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
        let function = &call["function"];
        format!("call {}: {} {}", word(&call["id"]), word(&function["name"]), word(&function["arguments"]))
    });
    text.into_iter().chain(calls).collect()
}

fn understood_tools() -> Value {
    let tool = |tool: ModelToolDefinition| {
        let parameters: Value = serde_json::from_str(tool.schema.as_str()).unwrap();
        json!({"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": parameters,
        }})
    };
    definitions().into_iter().map(tool).collect()
}

fn asked(question: &str) -> Conversation {
    let turns = vec![ConversationTurn { role: TurnRole::User, blocks: vec![TurnBlock::Text(question.into())] }];
    Conversation { system: Some("Be brief.".into()), turns }
}

fn result(id: &str, text: &str) -> TurnBlock {
    TurnBlock::ToolResult { id: id.into(), content: vec![ResultBlock::Text(text.into())], is_error: false }
}

fn kinds(blocks: &[TurnBlock]) -> Vec<String> {
    let kind = |block: &TurnBlock| match block {
        TurnBlock::Thinking { .. } => "thinking".to_owned(),
        TurnBlock::Text(_) => "text".to_owned(),
        TurnBlock::ToolCall { name, arguments, malformed: None, .. } => format!("{name} {}", arguments.as_str()),
        other => format!("{other:?}"),
    };
    blocks.iter().map(kind).collect()
}

fn definitions() -> Vec<ModelToolDefinition> {
    let number = json!({"type": "number"});
    let add = json!({"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]});
    let echo = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    [("add", "Adds two numbers.", add), ("echo", "Says it again.", echo)]
        .map(|(name, description, schema)| ModelToolDefinition {
            name: name.into(),
            description: description.into(),
            schema: raw(&schema),
        })
        .into()
}

/// What a model has answered.
#[derive(Debug, Default)]
struct Answer {
    thought: String,
    text: String,
    blocks: Vec<TurnBlock>,
    stop: Option<StopReason>,
}

async fn ask(model: &Model, conversation: &Conversation) -> Result<Answer, ModelError> {
    let tools = Arc::new(encode_tools(model.provider().format, &definitions()));
    let effort = Some(ReasoningEffort::Low);
    let request = CompletionRequest { conversation, tools: &tools, tool_choice: ToolChoice::Auto, effort };
    let mut stream = model.stream(request).await?;
    let mut answer = Answer::default();
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::TextDelta(text) => answer.text.push_str(&text),
            ModelEvent::ThinkingDelta(text) => answer.thought.push_str(&text),
            ModelEvent::BlockDone(block) => answer.blocks.push(block),
            ModelEvent::Done { stop } => answer.stop = Some(stop),
            _ => {}
        }
    }
    Ok(answer)
}

/// The API while it runs; it ends with its input.
struct Mock {
    url: String,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Mock {
    async fn start(fixtures: &Value) -> Self {
        let mut command = Command::new("node");
        command.arg(installed("servers/aimock.mjs")).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut mock = Self { url: String::new(), input, output, _child: child };
        mock.url = mock.tell(&fixtures.to_string()).await;
        mock
    }

    async fn model(&self, format: ApiFormat, name: &str, key: &str) -> Model {
        let base_url = self.url.parse().unwrap();
        let key = Some(Secret::new(key));
        let provider =
            ModelProvider { format, base_url, key, model: name.into(), max_tokens: 4096, headers: Vec::new() };
        Model::new(provider, Net::open(&NetOptions::default()).await.unwrap()).unwrap()
    }

    /// What it was sent so far.
    async fn requests(&mut self) -> Vec<Value> {
        serde_json::from_str(&self.tell("requests").await).unwrap()
    }

    /// Says a line, and gives the line that answers it.
    async fn tell(&mut self, line: &str) -> String {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        self.output.next_line().await.unwrap().expect("it has left")
    }
}
