//! Errors for a missing model or key, with hints on configuring one.

use std::fmt::Display;

use super::ProviderSource;
use crate::failure::Failure;
use crate::nearest::suggestion;

/// No model is configured and no key is set.
pub fn no_model(user_file: &dyn Display) -> Failure {
    others_work(Failure::usage("there is no model to talk to: no key is set"))
        .hint("set ANTHROPIC_API_KEY or OPENAI_API_KEY")
        .hint(format_args!("or write `providers` and `model` into {user_file}; docs/agent.md shows how"))
        .hint(LOCAL)
}

/// The named provider has no key.
pub fn no_key(name: &str, variable: &str, user_file: &dyn Display) -> Failure {
    others_work(Failure::usage(format_args!("there is no key for the models of {name}")))
        .hint(format_args!("set {variable}"))
        .hint(format_args!(
            "or keep it with `wharf secret set {name}` and write \
             {{\"providers\": {{\"{name}\": {{\"apiKey\": \"${{secret:{name}}}\"}}}}}} into {user_file}"
        ))
        .hint(LOCAL)
}

/// Adds a suggestion for a provider name that does not exist.
pub(super) fn unknown<'a>(failure: Failure, name: &str, sources: impl Iterator<Item = ProviderSource<'a>>) -> Failure {
    let names: Vec<&str> = sources.map(|source| source.name).collect();
    failure.hint(format_args!("there is no provider `{name}`: {}", suggestion(name, names.into_iter())))
}

/// The configured provider has no default model.
pub fn unnamed(name: &str) -> Failure {
    Failure::usage(format_args!("nobody says which model of `{name}`"))
        .hint(format_args!("name one: --model {name}/MODEL, or `model` of the provider in the settings"))
}

const LOCAL: &str = "a model on this machine needs no key: --model ollama/MODEL, or --model llama for llama.cpp";

fn others_work(failure: Failure) -> Failure {
    failure.hint("everything but the conversation works without: servers, tools, prompts, `wharf call`")
}
