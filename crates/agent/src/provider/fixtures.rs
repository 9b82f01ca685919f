//! Shared fixtures for the tests of all formats.

use std::sync::Arc;

use url::Url;
use wharf_json::RawJson;

use super::{ApiFormat, EncodedTools, ModelProvider, ModelToolDefinition, encode_tools};
use crate::conversation::{Conversation, ConversationTurn, ResultBlock, TurnBlock, TurnRole};

/// Returns a provider without a key.
pub(super) fn provider(format: ApiFormat, base_url: &str) -> ModelProvider {
    let base_url = Url::parse(base_url).unwrap();
    ModelProvider { format, base_url, key: None, model: "small".into(), max_tokens: 4096, headers: Vec::new() }
}

/// Returns definitions with one tool, `add`.
pub(super) fn tools(format: ApiFormat) -> Arc<EncodedTools> {
    let tool = ModelToolDefinition { name: "add".into(), description: "Adds.".into(), schema: RawJson::empty_object() };
    Arc::new(encode_tools(format, &[tool]))
}

/// Returns a conversation of three turns: a user message, these model blocks, and these results with another message.
pub(super) fn conversation(assistant: Vec<TurnBlock>, results: Vec<TurnBlock>) -> Conversation {
    let text = |text: &str| TurnBlock::Text(text.into());
    let answered = [vec![text("and now?")], results].concat();
    let turns = [(TurnRole::User, vec![text("add")]), (TurnRole::Assistant, assistant), (TurnRole::User, answered)];
    let turns = turns.into_iter().map(|(role, blocks)| ConversationTurn { role, blocks }).collect();
    Conversation { system: Some("be brief".into()), turns }
}

pub(super) fn call(id: &str, name: &str, arguments: &str) -> TurnBlock {
    TurnBlock::ToolCall { id: id.into(), name: name.into(), arguments: raw(arguments), malformed: None }
}

pub(super) fn result(id: &str, content: Vec<ResultBlock>) -> TurnBlock {
    TurnBlock::ToolResult { id: id.into(), content, is_error: false }
}

pub(super) fn failure(id: &str, content: Vec<ResultBlock>) -> TurnBlock {
    TurnBlock::ToolResult { id: id.into(), content, is_error: true }
}

pub(super) fn image_result() -> ResultBlock {
    ResultBlock::Image { media_type: "image/png".into(), data: "aGk=".into() }
}

pub(super) fn reasoning_block(source: &str, text: &str) -> TurnBlock {
    TurnBlock::Thinking { provider: source.into(), raw: raw(text) }
}

pub(super) fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}
