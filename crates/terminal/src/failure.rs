//! What a command ends with when it does not end well.
//!
//! The kind fixes the exit code, the report holds the evidence, and hints say how to get unstuck. How each error of
//! the client becomes one is in `explain`; how one is shown is in `show`.

mod explain;
mod show;

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use serde::Serialize;
use wharf_client::Exit;

pub use explain::{LOG_IN, chain, login_words};
pub use show::{Told, gutter, render};

/// How a command ended: well, or badly in a way that its own output has told already.
pub type Outcome = Result<Ending, Failure>;

/// An end that needs no more words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Fine,
    /// Told already; only the exit code is left to say.
    Told(Kind),
}

/// Why a command failed.
#[derive(Debug, Clone)]
pub struct Failure {
    pub kind: Kind,
    pub error: Box<Report>,
    pub hints: Vec<String>,
}

/// What is known of a failure. Every text is untrusted.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// A lower-case fragment without a full stop.
    pub message: String,
    /// The server it is about.
    pub server: Option<String>,
    /// The step of connecting that failed.
    pub step: Option<&'static str>,
    /// How the server's process ended.
    pub exit: Option<Exit>,
    /// The last lines it wrote to stderr.
    pub stderr: Vec<String>,
}

/// What kind of failure it is; several kinds may share an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Other,
    /// The server does not offer what was asked for.
    Unsupported,
    Usage,
    Unreachable,
    OffProtocol,
    /// The server wants to know who asks.
    LoginNeeded,
    /// What had to be agreed to first was declined.
    Denied,
    /// The tool answered with an error.
    ToolError,
    /// The server answered with an error.
    Refused,
    TimedOut,
    Interrupted,
    /// Whoever read our output has left, which is their right.
    OutputClosed,
}

impl Kind {
    /// The exit code.
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

impl Ending {
    pub fn exit_code(self) -> ExitCode {
        match self {
            Self::Fine => ExitCode::SUCCESS,
            Self::Told(kind) => kind.code().into(),
        }
    }
}

impl Failure {
    /// A failure of this kind.
    pub fn of(kind: Kind, message: impl Display) -> Self {
        Self { kind, error: Box::new(Report { message: message.to_string(), ..Report::default() }), hints: Vec::new() }
    }

    /// What was typed cannot be done.
    pub fn usage(message: impl Display) -> Self {
        Self::of(Kind::Usage, message)
    }

    /// The server does not offer it.
    pub fn unsupported(message: impl Display) -> Self {
        Self::of(Kind::Unsupported, message)
    }

    /// Something else.
    pub fn other(message: impl Display) -> Self {
        Self::of(Kind::Other, message)
    }

    /// A signal came.
    pub fn interrupted() -> Self {
        Self::of(Kind::Interrupted, "interrupted")
    }

    /// Output cannot be written.
    pub fn stdout(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::of(Kind::OutputClosed, "the output was closed"),
            _ => Self::other(format_args!("the output cannot be written: {error}")),
        }
    }

    /// Says which server it is about.
    #[must_use]
    pub fn about(mut self, server: &str) -> Self {
        self.error.server = Some(server.to_owned());
        self
    }

    /// Adds a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }
}
