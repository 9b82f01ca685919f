//! Failures of commands.
//!
//! The kind determines the exit code, the report holds the evidence, and the hints name next steps. `explain` converts
//! client errors, `show` formats failures.

mod explain;
mod missing_variable;
mod next_step;
mod show;

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use serde::Serialize;
use wharf_client::ProcessExit;
use wharf_wire::RawJson;

pub use explain::{LOGIN_COMMAND, TIMEOUT_OPTION, error_chain, login_arguments, shell_word, unavailable_error};
pub use missing_variable::mentions_variable;
pub use show::{ErrorDocument, evidence_line, gutter, output_line, render_failure};

/// Result of a command.
pub type CommandResult = Result<CommandEnding, Failure>;

/// Ending of a command with nothing more to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnding {
    Fine,
    /// Failed, and the output already reports it. Determines only the exit code.
    Reported(FailureKind),
}

/// Failure of a command.
#[derive(Debug, Clone)]
pub struct Failure {
    pub kind: FailureKind,
    pub error: Box<FailureReport>,
    pub hints: Vec<String>,
}

/// Details of a failure. All texts are untrusted.
#[derive(Debug, Clone, Default)]
pub struct FailureReport {
    /// A lower-case fragment without a full stop.
    pub message: String,
    /// The affected server.
    pub server: Option<String>,
    /// Code and data of the error that the server returned. The data are bounded by the client.
    pub code: Option<i64>,
    pub data: Option<RawJson>,
    /// The connection step that failed.
    pub step: Option<&'static str>,
    /// Exit status of the server's process.
    pub exit: Option<ProcessExit>,
    /// Last lines of the server's stderr.
    pub stderr: Vec<String>,
}

/// Kind of a failure. Several kinds can share an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    Other,
    /// The server does not support the request.
    Unsupported,
    Usage,
    Unreachable,
    OffProtocol,
    /// The server requires authentication.
    LoginNeeded,
    /// A required confirmation or permission was refused.
    Denied,
    /// The tool returned an error.
    ToolError,
    /// The server returned an error.
    Refused,
    TimedOut,
    Interrupted,
    /// The reader of stdout closed the pipe (EPIPE). Not an error.
    OutputClosed,
}

impl FailureKind {
    /// Returns the exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Other | Self::Unsupported => 1,
            Self::Usage => 2,
            Self::Unreachable | Self::OffProtocol => 3,
            Self::LoginNeeded => 4,
            Self::Denied => 5,
            Self::ToolError | Self::Refused => 6,
            Self::TimedOut => 7,
            Self::Interrupted => 130,
        }
    }
}

impl CommandEnding {
    pub fn exit_code(self) -> ExitCode {
        match self {
            Self::Fine => ExitCode::SUCCESS,
            Self::Reported(kind) => kind.code().into(),
        }
    }
}

impl Failure {
    /// Creates a failure of this kind.
    pub fn new(kind: FailureKind, message: impl Display) -> Self {
        Self {
            kind,
            error: Box::new(FailureReport { message: message.to_string(), ..FailureReport::default() }),
            hints: Vec::new(),
        }
    }

    /// Creates a usage failure.
    pub fn usage(message: impl Display) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    /// Creates a failure for a request that the server does not support.
    pub fn unsupported(message: impl Display) -> Self {
        Self::new(FailureKind::Unsupported, message)
    }

    /// Creates a failure of no particular kind.
    pub fn other(message: impl Display) -> Self {
        Self::new(FailureKind::Other, message)
    }

    /// Creates the failure of an interrupted command.
    pub fn interrupted() -> Self {
        Self::new(FailureKind::Interrupted, "interrupted")
    }

    /// Creates the failure of writing to stdout.
    pub fn from_stdout_error(error: io::Error) -> Self {
        match error.kind() {
            // A signal ended the wait for a reader.
            io::ErrorKind::Interrupted => Self::interrupted(),
            io::ErrorKind::BrokenPipe => Self::new(FailureKind::OutputClosed, "stdout was closed"),
            _ => Self::other(format_args!("cannot write to stdout: {error}")),
        }
    }

    /// Sets the affected server.
    #[must_use]
    pub fn about_server(mut self, server: &str) -> Self {
        self.error.server = Some(server.to_owned());
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }
}
