//! One response prepared for any format: tools resolved, ids assigned, thinking sealed.

use serde_json::Value;

use super::format::ModelApiFormat;
use super::new_content::entries;
use super::script::{Answer, AnswerFailure, Say, Stop, Usage};

/// The response to send.
pub(super) struct Turn {
    /// Distinguishes its ids from those of other turns.
    pub number: usize,
    pub model: String,
    pub blocks: Vec<Block>,
    pub stop: Stop,
    pub usage: Usage,
    /// Characters per delta.
    pub delta: usize,
    /// Send an error instead of the end.
    pub breaks_off: bool,
}

/// A content block of the response.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Block {
    Text(String),
    Thinking(String),
    Call { id: String, name: String, arguments: String },
    Unknown(Value),
}

impl Turn {
    pub fn new(number: usize, format: ModelApiFormat, answer: &Answer, request: &Value) -> Turn {
        let blocks = answer.blocks.iter().enumerate().map(|(index, say)| match say {
            Say::Text(text) => Block::Text(text.clone()),
            Say::Thinking(text) => Block::Thinking(text.clone()),
            Say::Unknown(raw) => Block::Unknown(raw.clone()),
            Say::ToolCall { name, arguments } => Block::Call {
                id: fake_id(if format == ModelApiFormat::Anthropic { "toolu" } else { "call" }, number, index),
                name: resolve_tool(request, name),
                arguments: arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned),
            },
        });
        Turn {
            number,
            model: request["model"].as_str().unwrap_or_default().to_owned(),
            blocks: blocks.collect(),
            stop: answer.stop_reason(),
            usage: answer.usage,
            delta: answer.pace.delta,
            breaks_off: answer.fail == Some(AnswerFailure::ErrorEvent),
        }
    }

    /// Returns the id of the response.
    pub fn id(&self, prefix: &str) -> String {
        fake_id(prefix, self.number, 0)
    }

    /// Returns the id of a block.
    pub fn block_id(&self, prefix: &str, index: usize) -> String {
        fake_id(prefix, self.number, index)
    }

    /// Returns the calls, each with the index of the preceding thinking, if any.
    pub fn calls(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.blocks.iter().enumerate().filter_map(|(index, block)| match block {
            Block::Call { id, .. } => {
                let thinking = self.blocks[..index].iter().rposition(|block| matches!(block, Block::Thinking(_)));
                Some((id.as_str(), thinking))
            }
            _ => None,
        })
    }

    /// Splits text into deltas.
    pub fn split_deltas(&self, text: &str) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        characters.chunks(self.delta.max(1)).map(|piece| piece.iter().collect()).collect()
    }
}

/// Returns an id in the style of the real APIs.
pub(super) fn fake_id(prefix: &str, number: usize, index: usize) -> String {
    format!("{prefix}_01modeld{number:06}{index:04}")
}

/// Resolves a tool name of the script: the tool itself, or one with a name that ends in it at a word boundary.
fn resolve_tool(request: &Value, wanted: &str) -> String {
    let names = || {
        let tools = entries(&request["tools"]).iter();
        tools.filter_map(|tool| tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()))
    };
    let ends_in = |name: &&str| {
        name.strip_suffix(wanted).is_some_and(|before| !before.ends_with(|last: char| last.is_ascii_alphanumeric()))
    };
    let found = names().find(|name| *name == wanted).or_else(|| names().find(ends_in));
    found.unwrap_or(wanted).to_owned()
}
