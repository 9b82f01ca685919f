//! Errors for a missing model or key, with hints on configuring one.

use std::fmt::Display;

use super::ProviderSource;
use crate::failure::Failure;
use crate::suggestions::suggestion;

/// No model is configured and no key is set.
pub fn no_model(user_file: &dyn Display) -> Failure {
    others_work(Failure::usage("no model is configured and no API key is set"))
        .hint("set ANTHROPIC_API_KEY or OPENAI_API_KEY")
        .hint(format_args!("or set `providers` and `model` in {user_file} (see docs/agent.md)"))
        .hint(LOCAL_MODEL_HINT)
}

/// The named provider has no key.
pub fn no_key(name: &str, variable: &str, user_file: &dyn Display) -> Failure {
    others_work(Failure::usage(format_args!("no API key for provider {name}")))
        .hint(format_args!("set {variable}"))
        .hint(format_args!(
            "or store it with `wharf secret set {name}` and add \
             {{\"providers\": {{\"{name}\": {{\"apiKey\": \"${{secret:{name}}}\"}}}}}} to {user_file}"
        ))
        .hint(LOCAL_MODEL_HINT)
}

/// Adds a suggestion for a provider name that does not exist.
pub(super) fn unknown<'a>(failure: Failure, name: &str, sources: impl Iterator<Item = ProviderSource<'a>>) -> Failure {
    let names: Vec<&str> = sources.map(|source| source.name).collect();
    failure.hint(format_args!("unknown provider `{name}`: {}", suggestion(name, names.into_iter())))
}

/// The configured provider has no default model.
pub fn unnamed(name: &str) -> Failure {
    Failure::usage(format_args!("no model named for provider `{name}`"))
        .hint(format_args!("use --model {name}/MODEL, or set the provider's `model` in the settings"))
}

const LOCAL_MODEL_HINT: &str = "local models need no key: --model ollama/MODEL, or --model llama for llama.cpp";

fn others_work(failure: Failure) -> Failure {
    failure.hint("servers, tools, prompts and `wharf call` work without a model")
}
