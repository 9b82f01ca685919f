//! Checks that depend on the model name. Unknown models accept everything.

use serde_json::Value;

use super::RequestCheckResult;
use crate::modeld::api_error::Refusal;
use crate::modeld::new_content::entries;

/// Anthropic models that support thinking budgets only.
const BUDGET_ONLY_MODELS: [&str; 9] = [
    "claude-3",
    "claude-opus-4-0",
    "claude-opus-4-1",
    "claude-opus-4-2025",
    "claude-opus-4-5",
    "claude-sonnet-4-0",
    "claude-sonnet-4-2025",
    "claude-sonnet-4-5",
    "claude-haiku-4-5",
];
/// Models that support both budgets and adaptive thinking.
const BUDGET_OR_ADAPTIVE_MODELS: [&str; 2] = ["claude-opus-4-6", "claude-sonnet-4-6"];
/// The first of these that supports the effort parameter.
const FIRST_EFFORT_MODEL: &str = "claude-opus-4-5";
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
/// OpenAI models without reasoning.
const NON_REASONING_MODELS: [&str; 3] = ["gpt-3.5", "gpt-4", "chatgpt-"];

/// Checks the thinking parameters of an Anthropic model.
pub(super) fn anthropic(body: &Value) -> RequestCheckResult {
    let begins = |names: &[&str]| names.iter().any(|name| model(body).starts_with(name));
    let refuse = |message: &str| Err(Refusal::invalid(message));
    let within_budgets = begins(&BUDGET_ONLY_MODELS);
    let by_itself = begins(&["claude-"]) && !within_budgets && !begins(&BUDGET_OR_ADAPTIVE_MODELS);
    let effort = &body["output_config"]["effort"];
    match body["thinking"]["type"].as_str() {
        Some("enabled") if by_itself => {
            return refuse(
                "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \
                 \"output_config.effort\" to control thinking behavior.",
            );
        }
        Some("adaptive") if within_budgets => return refuse("adaptive thinking is not supported on this model"),
        Some("enabled") => budget(body)?,
        Some("adaptive" | "disabled") | None => {}
        Some(_) => return refuse("thinking.type: Input should be 'adaptive', 'disabled' or 'enabled'"),
    }
    match effort.as_str() {
        Some(_) if within_budgets && !begins(&[FIRST_EFFORT_MODEL]) => {
            refuse("This model does not support the effort parameter.")
        }
        Some(effort) if EFFORTS.contains(&effort) => Ok(()),
        None if effort.is_null() => Ok(()),
        _ => refuse("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'"),
    }
}

fn budget(body: &Value) -> RequestCheckResult {
    let refuse = |message: &str| Err(Refusal::invalid(message));
    match body["thinking"]["budget_tokens"].as_u64() {
        None => refuse("thinking.enabled.budget_tokens: Field required"),
        Some(..1024) => refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"),
        Some(budget) if body["max_tokens"].as_u64().is_none_or(|most| most <= budget) => {
            refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")
        }
        Some(_) if matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool")) => {
            refuse("Thinking may not be enabled when tool_choice forces tool use.")
        }
        Some(_) => Ok(()),
    }
}

/// Rejects reasoning parameters and items for an OpenAI model without reasoning.
pub(super) fn responses(body: &Value) -> RequestCheckResult {
    if !NON_REASONING_MODELS.iter().any(|name| model(body).starts_with(name)) {
        return Ok(());
    }
    if entries(&body["include"]).iter().any(|wanted| wanted == "reasoning.encrypted_content") {
        return Err(Refusal::invalid("Encrypted content is not supported with this model.").with_param("include"));
    }
    if body["reasoning"]["effort"].is_string() {
        let message = "Unsupported parameter: 'reasoning.effort' is not supported with this model.";
        return Err(Refusal::invalid(message).with_param("reasoning.effort").with_code("unsupported_parameter"));
    }
    if entries(&body["input"]).iter().any(|item| item["type"] == "reasoning") {
        let rule = "Reasoning input items can only be provided to a reasoning or computer use model.";
        let message = format!("{rule} Remove reasoning items from your input and try again.");
        return Err(Refusal::invalid(message).with_param("input"));
    }
    Ok(())
}

fn model(body: &Value) -> &str {
    body["model"].as_str().unwrap_or_default()
}
