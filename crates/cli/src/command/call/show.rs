//! Prints the result of a call as text or as a JSON document.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use wharf_spec::UntrustedText;
use wharf_wire::{RawJson, ToolResult};

use wharf_terminal::clock::millis;
use wharf_terminal::content::content_text_saving;
use wharf_terminal::failure::{CommandEnding, CommandResult, ErrorDocument, Failure, FailureKind};
use wharf_terminal::saving::SaveDirectory;
use wharf_terminal::session::CommandSession;

/// A finished call with its result.
pub struct FinishedCall<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    pub answer: &'a ToolResult,
    pub duration: Duration,
    /// Directory to save binary content to.
    pub save: Option<&'a Path>,
}

/// JSON document of a call.
#[derive(Serialize)]
struct CallDocument<'a> {
    success: bool,
    output: &'a str,
    data: Option<&'a RawJson>,
    error: Option<ErrorDocument<'a>>,
    content: &'a RawJson,
    server: &'a str,
    tool: &'a str,
    duration_ms: u64,
    /// Files written by `--save`.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<&'a [PathBuf]>,
}

/// Prints the result. A tool error is a result, too.
///
/// # Errors
///
/// Fails if the tool reports an error, or if the output cannot be written.
pub fn show(session: &CommandSession, answered: &FinishedCall<'_>) -> CommandResult {
    let FinishedCall { server, tool, answer, duration, save } = answered;
    let mut save_directory = save.map(|path| SaveDirectory::open(session, path, &[server, tool])).transpose()?;
    let output = output_text(answer, save_directory.as_mut())?;
    let failure = answer.is_error.then(|| tool_failure(server, tool, &output));
    if session.console.mode.json {
        let none = RawJson::from_value::<[u8; 0]>(&[]).map_err(Failure::other)?;
        session.console.print_document(
            !answer.is_error,
            &CallDocument {
                success: !answer.is_error,
                output: &output,
                data: answer.structured.as_ref(),
                error: failure.as_ref().map(Failure::error_document),
                content: answer.content_raw.as_ref().unwrap_or(&none),
                server,
                tool,
                duration_ms: millis(*duration),
                saved: save_directory.as_ref().map(SaveDirectory::saved),
            },
        )?;
        return Ok(failure.map_or(CommandEnding::Fine, |failure| CommandEnding::Reported(failure.kind)));
    }
    let end = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
    session.console.print(format_args!("{}{end}", UntrustedText::new(output.as_str()).multiline()))?;
    match failure {
        None => Ok(CommandEnding::Fine),
        Some(mut failure) => {
            // The tool's own message is already on stdout.
            failure.error.message = format!("the tool `{tool}` returned an error");
            Err(failure)
        }
    }
}

/// Returns the text of the result, or its structured data if there are no content blocks.
fn output_text(answer: &ToolResult, save_directory: Option<&mut SaveDirectory>) -> Result<String, Failure> {
    match &answer.structured {
        Some(data) if answer.content.is_empty() => Ok(data.as_str().to_owned()),
        _ => content_text_saving(&answer.content, save_directory),
    }
}

fn tool_failure(server: &str, tool: &str, output: &str) -> Failure {
    let message = if output.is_empty() { format!("the tool `{tool}` returned an error") } else { output.to_owned() };
    let mut failure = Failure::other(message).about_server(server);
    failure.kind = FailureKind::ToolError;
    failure
}
