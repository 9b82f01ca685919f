//! Formats failures as text or as JSON.

use std::fmt::Write as _;

use serde::Serialize;
use wharf_client::ProcessExit;
use wharf_spec::UntrustedText;
use wharf_wire::RawJson;

use super::{Failure, FailureKind};
use crate::style::{BAD, QUIET, paint};

/// Maximum characters of a stderr line.
const MAX_STDERR_LINE: usize = 400;
/// Maximum characters of one part of an evidence line.
const MAX_PART_CHARS: usize = 200;
/// Maximum characters of an error's data.
const MAX_DATA_CHARS: usize = 2_000;

/// Formats a failure as text, without the last line break: message, step, stderr, hints.
pub fn render_failure(failure: &Failure) -> String {
    let Failure { error, hints, .. } = failure;
    let server = error.server.as_ref().map(|server| format!("{}: ", UntrustedText::new(server.as_str())));
    let message = UntrustedText::new(error.message.as_str());
    let mut text = format!("{} {}{message}.", paint(BAD, "error:"), server.unwrap_or_default());
    if let Some(data) = &error.data {
        let data = UntrustedText::new(data.as_str());
        let _ = write!(text, "\n  {} {}", paint(QUIET, "data:"), data.truncate(MAX_DATA_CHARS));
    }
    if let Some(step) = error.step {
        let _ = write!(text, "\n  {} {step}", paint(QUIET, "failed at step:"));
    }
    if !error.stderr.is_empty() {
        let _ = write!(text, "\n  {}", paint(QUIET, "last lines of stderr:"));
    }
    for line in &error.stderr {
        let _ = write!(text, "\n{}", output_line(line));
    }
    for hint in hints {
        let _ = write!(text, "\n  {} {}", paint(QUIET, "hint:"), UntrustedText::new(hint.as_str()));
    }
    text
}

/// Formats a failure on one line: the exit status if known, otherwise the message, and the last stderr line.
pub fn evidence_line(failure: &Failure) -> String {
    let stderr =
        failure.error.stderr.last().map(|line| UntrustedText::new(line.trim()).truncate(MAX_PART_CHARS).to_string());
    let head = match (failure.error.exit, &stderr) {
        (Some(exit @ (ProcessExit::Code(_) | ProcessExit::Signal(_))), _) => exit.to_string(),
        _ => UntrustedText::new(failure.error.message.as_str()).truncate(MAX_PART_CHARS).to_string(),
    };
    stderr.map_or(head.clone(), |stderr| format!("{head}: {stderr}"))
}

/// Formats a line of untrusted text, escaped and indented behind a bar. Never shortened: questions are about all of it.
pub fn gutter(line: &str) -> String {
    format!("  {} {}", paint(QUIET, "│"), UntrustedText::new(line))
}

/// Formats a line of a server's output in the gutter, shortened.
pub fn output_line(line: &str) -> String {
    gutter(&UntrustedText::new(line).truncate(MAX_STDERR_LINE).to_string())
}

/// JSON document of a failure. Texts are raw; JSON escapes them.
#[derive(Debug, Serialize)]
pub struct ErrorDocument<'a> {
    kind: FailureKind,
    message: &'a str,
    server: Option<&'a str>,
    /// Code and data of the error that the server returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawJson>,
    step: Option<&'a str>,
    exit: Option<ExitDocument>,
    stderr: &'a [String],
    hints: &'a [String],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum ExitDocument {
    Code(i32),
    Signal(i32),
}

/// JSON document of a command that failed as a whole.
#[derive(Debug, Serialize)]
struct FailureDocument<'a> {
    schema: u32,
    ok: bool,
    success: bool,
    error: ErrorDocument<'a>,
}

impl Failure {
    /// Returns the `error` member.
    pub fn error_document(&self) -> ErrorDocument<'_> {
        let error = &self.error;
        let exit = match error.exit {
            Some(ProcessExit::Code(code)) => Some(ExitDocument::Code(code)),
            Some(ProcessExit::Signal(signal)) => Some(ExitDocument::Signal(signal)),
            Some(ProcessExit::Unknown) | None => None,
        };
        ErrorDocument {
            kind: self.kind,
            message: &error.message,
            server: error.server.as_deref(),
            code: error.code,
            data: error.data.as_ref(),
            step: error.step,
            exit,
            stderr: &error.stderr,
            hints: &self.hints,
        }
    }

    /// Returns the whole document.
    pub fn document(&self) -> impl Serialize + '_ {
        FailureDocument { schema: 1, ok: false, success: false, error: self.error_document() }
    }
}
