//! Arguments of prompts, and what a prompt becomes with them.

use wharf_client::{Connection, RequestOptions};
use wharf_spec::EscapedText;
use wharf_wire::{PromptArgument, PromptDefinition, PromptResult};

use crate::call_arguments::{ArgumentValue, TypedArgument};
use crate::failure::Failure;
use crate::suggestions::{quote_names, suggestion};

/// Maximum characters of an argument's description in a hint.
const MAX_DESCRIPTION: usize = 300;

/// Returns an argument as a string, the only type that prompts accept.
///
/// # Errors
///
/// Fails if the argument is JSON.
pub fn text_argument(given: TypedArgument) -> Result<(String, String), Failure> {
    match given.value {
        ArgumentValue::Text(text) => Ok((given.name, text)),
        ArgumentValue::Json(_) | ArgumentValue::Member(_) => {
            Err(Failure::usage(format_args!("`{}` must be a string: prompts accept no other type", given.name))
                .with_hint(format_args!("write {}=value", given.name)))
        }
    }
}

/// Checks the name and the required arguments before anything is sent.
///
/// # Errors
///
/// Fails with the name of the problem: an unknown prompt or missing arguments.
pub fn check_arguments(name: &str, given: &[(String, String)], prompts: &[PromptDefinition]) -> Result<(), Failure> {
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
        let names = prompts.iter().map(|prompt| prompt.name.as_str());
        return Err(Failure::usage(format_args!("no prompt named `{name}`")).with_hint(suggestion(name, names)));
    };
    let is_missing =
        |argument: &&PromptArgument| argument.required && !given.iter().any(|(known, _)| *known == argument.name);
    let missing: Vec<&PromptArgument> = prompt.arguments.iter().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|argument| argument.name.as_str()).collect();
    let all: Vec<&str> = prompt.arguments.iter().map(|argument| argument.name.as_str()).collect();
    let failure = Failure::usage(format_args!("the prompt `{name}` needs {}", quote_names(&names)));
    let described = |argument: &&PromptArgument| {
        argument
            .description
            .as_ref()
            .map(|about| format!("`{}`: {}", argument.name, EscapedText::single_line(about, MAX_DESCRIPTION)))
    };
    let failure = missing.iter().filter_map(described).fold(failure, Failure::with_hint);
    Err(failure.with_hint(format_args!("arguments: {}", quote_names(&all))))
}

pub async fn expand(
    connection: &Connection,
    name: &str,
    arguments: &[(String, String)],
) -> Result<PromptResult, Failure> {
    let expanded = connection.get_prompt(name, arguments, RequestOptions::default()).await;
    expanded.map_err(|error| Failure::from_call_error(connection, error))
}
