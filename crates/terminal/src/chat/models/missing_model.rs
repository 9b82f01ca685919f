//! Errors for a missing model or key, with hints on configuring one.

use std::fmt::Display;

use wharf_spec::UntrustedText;

use super::ProviderSource;
use crate::failure::Failure;
use crate::suggestions::suggestion;

/// No model is configured and no key is set.
pub fn no_model(user_file: &dyn Display) -> Failure {
    with_works_without_hint(Failure::usage("no model is configured and no API key is set"))
        .with_hint("set ANTHROPIC_API_KEY or OPENAI_API_KEY")
        .with_hint(format_args!("or set `providers` and `model` in {user_file}; `wharf schema` describes their keys"))
        .with_hint(LOCAL_MODEL_HINT)
}

/// The named provider has no key.
pub fn no_key(name: &str, variable: &str, user_file: &dyn Display) -> Failure {
    with_works_without_hint(Failure::usage(format_args!("no API key for provider {name}")))
        .with_hint(format_args!("set {variable}"))
        .with_hint(format_args!(
            "or store it with `wharf secret set {name}` and add \
             {{\"providers\": {{\"{name}\": {{\"apiKey\": \"${{secret:{name}}}\"}}}}}} to {user_file}"
        ))
        .with_hint(LOCAL_MODEL_HINT)
}

/// Adds a suggestion for a provider name that does not exist.
pub(super) fn with_provider_suggestion<'a>(
    failure: Failure,
    name: &str,
    sources: impl Iterator<Item = ProviderSource<'a>>,
) -> Failure {
    let names: Vec<&str> = sources.map(|source| source.name).collect();
    failure.with_hint(format_args!("unknown provider `{name}`: {}", suggestion(name, names.into_iter())))
}

/// The text before the first slash names no provider.
pub(super) fn unknown_provider<'a>(
    model: &str,
    provider: &str,
    sources: impl Iterator<Item = ProviderSource<'a>>,
) -> Failure {
    let names: Vec<&str> = sources.map(|source| source.name).collect();
    let (model, shown) = (UntrustedText::new(model), UntrustedText::new(provider));
    Failure::usage(format_args!("unknown provider `{shown}`"))
        .with_hint(suggestion(provider, names.into_iter()))
        .with_hint(format_args!("a model name that contains a slash needs its provider: --model PROVIDER/{model}"))
}

/// The configured provider has no default model.
pub fn no_model_named(name: &str) -> Failure {
    Failure::usage(format_args!("no model named for provider `{name}`"))
        .with_hint(format_args!("use --model {name}/MODEL, or set the provider's `model` in the settings"))
}

const LOCAL_MODEL_HINT: &str = "local models need no key: --model ollama/MODEL, or --model llama for llama.cpp";

fn with_works_without_hint(failure: Failure) -> Failure {
    failure.with_hint("servers, tools, prompts and `wharf call` work without a model")
}
