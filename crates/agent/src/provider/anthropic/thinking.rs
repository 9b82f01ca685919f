//! How a model is told how much to think: by a budget, or by how hard to try.
//!
//! Claude is told the one up to 4.5 and the other since 4.6; since 4.7 it refuses the budget.

use serde::Serialize;

use crate::conversation::{Block, Turn};
use crate::provider::{Effort, Provider, Request, ToolChoice};

/// The least a model may be given to think.
const LEAST_THOUGHT: u32 = 1024;
/// The first version of Claude that finds its own measure.
const ADAPTIVE: (u32, u32) = (4, 6);

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    /// Up to so many tokens.
    Enabled { budget_tokens: u32 },
    /// As the model sees fit. What it thinks is kept back unless one asks for it.
    Adaptive { display: &'static str },
}

#[derive(Serialize)]
pub(super) struct OutputConfig {
    effort: &'static str,
}

/// Whether and how the model thinks, where an effort is wanted. One that has to call a tool may not think.
pub(super) fn thinking(provider: &Provider, request: &Request<'_>) -> Option<Thinking> {
    let effort = request.effort?;
    let free = matches!(request.tool_choice, ToolChoice::Auto | ToolChoice::Never);
    match adapts(&provider.model) {
        _ if !free => None,
        true => Some(Thinking::Adaptive { display: "summarized" }),
        false => budget(provider, effort, &request.conversation.turns),
    }
}

/// How hard the model tries, thinking or not.
pub(super) fn output_config(provider: &Provider, request: &Request<'_>) -> Option<OutputConfig> {
    request.effort.filter(|_| adapts(&provider.model)).map(|effort| OutputConfig { effort: effort.name() })
}

/// Whether a model finds its own measure. Whatever speaks this format and is no Claude has learned it from the older
/// ones, as llama.cpp and Ollama have.
fn adapts(model: &str) -> bool {
    let Some((_, name)) = model.rsplit_once("claude-") else { return false };
    // A number of one digit or two is part of the version; a longer one is a date.
    let parts = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| part.len() <= 2);
    let mut numbers = parts.filter_map(|part| part.parse().ok());
    numbers.next().is_none_or(|major| (major, numbers.next().unwrap_or(0)) >= ADAPTIVE)
}

/// What the model may spend. One that goes on after its calls has to have thought before them.
fn budget(provider: &Provider, effort: Effort, turns: &[Turn]) -> Option<Thinking> {
    let wanted = match effort {
        Effort::Low => 2048,
        Effort::Medium => 8192,
        Effort::High => 24_576,
    };
    let budget_tokens = wanted.min(provider.max_tokens / 2);
    (budget_tokens >= LEAST_THOUGHT && may_think(turns, &provider.source()))
        .then_some(Thinking::Enabled { budget_tokens })
}

fn may_think(turns: &[Turn], source: &str) -> bool {
    let [.., asked, answered] = turns else { return true };
    let goes_on = answered.blocks.iter().any(|block| matches!(block, Block::ToolResult { .. }));
    let first = asked.blocks.first();
    !goes_on || matches!(first, Some(Block::Thinking { provider, .. }) if provider == source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_told_to_think_as_its_generation_knows_it() {
        for (model, expected) in [
            ("claude-sonnet-5", true),
            ("claude-opus-5-5", true),
            ("claude-opus-4-7", true),
            ("claude-sonnet-4-6", true),
            ("claude-opus-10", true),
            ("claude-mythos-preview", true),
            ("anthropic/claude-opus-4.8", true),
            ("eu.anthropic.claude-opus-4-6-v1:0", true),
            ("claude-opus-4-5-20251101", false),
            ("claude-haiku-4-5", false),
            ("claude-sonnet-4-20250514", false),
            ("claude-sonnet-4@20250514", false),
            ("claude-opus-4-1", false),
            ("claude-3-7-sonnet-latest", false),
            ("anthropic.claude-3-5-sonnet-20241022-v2:0", false),
            ("claude-2.1", false),
            ("qwen3", false),
            ("", false),
        ] {
            assert_eq!(adapts(model), expected, "{model}");
        }
    }
}
