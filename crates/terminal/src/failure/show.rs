//! Formats failures as text or as JSON.

use std::fmt::Write as _;

use serde::Serialize;
use wharf_client::ProcessExit;
use wharf_spec::UntrustedText;

use super::{Failure, FailureKind};
use crate::style::{BAD, QUIET, paint};

/// Maximum characters of a stderr line.
const MAX_STDERR_LINE: usize = 400;

/// Formats a failure as text, without the last line break: message, step, stderr, hints.
pub fn render_failure(failure: &Failure) -> String {
    let Failure { error, hints, .. } = failure;
    let server = error.server.as_ref().map(|server| format!("{}: ", UntrustedText::new(server.as_str())));
    let message = UntrustedText::new(error.message.as_str());
    let mut text = format!("{} {}{message}.", paint(BAD, "error:"), server.unwrap_or_default());
    if let Some(step) = error.step {
        let _ = write!(text, "\n  {} {step}", paint(QUIET, "failed at step:"));
    }
    if !error.stderr.is_empty() {
        let _ = write!(text, "\n  {}", paint(QUIET, "last lines of stderr:"));
    }
    for line in &error.stderr {
        let _ = write!(text, "\n{}", gutter(line));
    }
    for hint in hints {
        let _ = write!(text, "\n  {} {}", paint(QUIET, "hint:"), UntrustedText::new(hint.as_str()));
    }
    text
}

/// Formats a line of a server's output, escaped and indented behind a bar.
pub fn gutter(line: &str) -> String {
    format!("  {} {}", paint(QUIET, "│"), UntrustedText::new(line).truncate(MAX_STDERR_LINE))
}

/// JSON document of a failure. Texts are raw; JSON escapes them.
#[derive(Debug, Serialize)]
pub struct ErrorDocument<'a> {
    kind: FailureKind,
    message: &'a str,
    server: Option<&'a str>,
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
            step: error.step,
            exit,
            stderr: &error.stderr,
            hints: &self.hints,
        }
    }

    /// Returns the whole document.
    pub fn document(&self) -> impl Serialize + '_ {
        FailureDocument { schema: 1, success: false, error: self.error_document() }
    }
}
