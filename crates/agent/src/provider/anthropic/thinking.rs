//! Thinking parameters: a token budget or an effort level.
//!
//! Claude models up to 4.5 take a budget. Models since 4.6 take an effort level, and models since 4.7 reject a budget.

use serde::Serialize;

use crate::conversation::{ConversationTurn, TurnBlock};
use crate::provider::{CompletionRequest, ModelProvider, ReasoningEffort, ToolChoice};

/// Minimum thinking budget in tokens.
const MIN_THINKING_TOKENS: u32 = 1024;
/// First version of Claude with adaptive thinking.
const FIRST_ADAPTIVE_VERSION: (u32, u32) = (4, 6);

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ThinkingParams {
    /// Thinks up to this many tokens.
    Enabled { budget_tokens: u32 },
    /// Thinks adaptively. The API returns the thinking only if `display` requests it.
    Adaptive { display: &'static str },
}

#[derive(Serialize)]
pub(super) struct OutputConfig {
    effort: &'static str,
}

/// Returns the thinking parameters if an effort is requested. A model that is forced to call a tool cannot think.
pub(super) fn thinking_params(provider: &ModelProvider, request: &CompletionRequest<'_>) -> Option<ThinkingParams> {
    let effort = request.effort?;
    let free = matches!(request.tool_choice, ToolChoice::Auto | ToolChoice::Never);
    match is_adaptive(&provider.model) {
        _ if !free => None,
        true => Some(ThinkingParams::Adaptive { display: "summarized" }),
        false => thinking_budget(provider, effort, &request.conversation.turns),
    }
}

/// Returns the effort level, with or without thinking.
pub(super) fn output_config(provider: &ModelProvider, request: &CompletionRequest<'_>) -> Option<OutputConfig> {
    request.effort.filter(|_| is_adaptive(&provider.model)).map(|effort| OutputConfig { effort: effort.name() })
}

/// Reports whether a model thinks adaptively. Other models behind this format, such as those of llama.cpp and Ollama,
/// follow the older Claude models.
fn is_adaptive(model: &str) -> bool {
    let Some((_, name)) = model.rsplit_once("claude-") else { return false };
    // Numbers of one or two digits are part of the version; longer ones are dates.
    let parts = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| part.len() <= 2);
    let mut numbers = parts.filter_map(|part| part.parse().ok());
    numbers.next().is_none_or(|major| (major, numbers.next().unwrap_or(0)) >= FIRST_ADAPTIVE_VERSION)
}

/// Returns the thinking budget. When the last turn has tool results, the model turn before must begin with thinking.
fn thinking_budget(
    provider: &ModelProvider,
    effort: ReasoningEffort,
    turns: &[ConversationTurn],
) -> Option<ThinkingParams> {
    let wanted = match effort {
        ReasoningEffort::Low => 2048,
        ReasoningEffort::Medium => 8192,
        ReasoningEffort::High => 24_576,
    };
    let budget_tokens = wanted.min(provider.max_tokens / 2);
    (budget_tokens >= MIN_THINKING_TOKENS && may_think(turns, &provider.source_id()))
        .then_some(ThinkingParams::Enabled { budget_tokens })
}

fn may_think(turns: &[ConversationTurn], source: &str) -> bool {
    let [.., asked, answered] = turns else { return true };
    let goes_on = answered.blocks.iter().any(|block| matches!(block, TurnBlock::ToolResult { .. }));
    let first = asked.blocks.first();
    !goes_on || matches!(first, Some(TurnBlock::Thinking { provider, .. }) if provider == source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adaptive_thinking_is_detected_from_model_name() {
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
            assert_eq!(is_adaptive(model), expected, "{model}");
        }
    }
}
