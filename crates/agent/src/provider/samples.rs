//! Shared fixtures for the tests of all formats.

use std::sync::Arc;

use url::Url;
use wharf_json::RawJson;

use super::{Compiled, Format, ModelToolDefinition, Provider, compile};
use crate::conversation::{Block, Conversation, ResultBlock, Role, Turn};

/// Returns a provider without a key.
pub(super) fn provider(format: Format, base_url: &str) -> Provider {
    let base_url = Url::parse(base_url).unwrap();
    Provider { format, base_url, key: None, model: "small".into(), max_tokens: 4096, headers: Vec::new() }
}

/// Returns definitions with one tool, `add`.
pub(super) fn tools(format: Format) -> Arc<Compiled> {
    let tool = ModelToolDefinition { name: "add".into(), description: "Adds.".into(), schema: RawJson::empty_object() };
    Arc::new(compile(format, &[tool]))
}

/// Returns a conversation of three turns: a user message, these model blocks, and these results with another message.
pub(super) fn conversation(said: Vec<Block>, results: Vec<Block>) -> Conversation {
    let text = |text: &str| Block::Text(text.into());
    let answered = [vec![text("and now?")], results].concat();
    let turns = [(Role::User, vec![text("add")]), (Role::Assistant, said), (Role::User, answered)];
    let turns = turns.into_iter().map(|(role, blocks)| Turn { role, blocks }).collect();
    Conversation { system: Some("be brief".into()), turns }
}

pub(super) fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall { id: id.into(), name: name.into(), arguments: raw(arguments), malformed: None }
}

pub(super) fn result(id: &str, content: Vec<ResultBlock>) -> Block {
    Block::ToolResult { id: id.into(), content, is_error: false }
}

pub(super) fn failure(id: &str, content: Vec<ResultBlock>) -> Block {
    Block::ToolResult { id: id.into(), content, is_error: true }
}

pub(super) fn picture() -> ResultBlock {
    ResultBlock::Image { media_type: "image/png".into(), data: "aGk=".into() }
}

pub(super) fn thought(source: &str, text: &str) -> Block {
    Block::Thinking { provider: source.into(), raw: raw(text) }
}

pub(super) fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}
