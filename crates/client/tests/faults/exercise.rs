//! What a user does with any server: connect, call a tool that writes, call one that reads, close.

use std::fmt;
use std::time::Instant;

use wharf_client::{CallError, CallOptions, ConnectCause, ConnectError, Connection, connect};
use wharf_wire::{Era, Raw, ToolResult};

use crate::cell::Cell;

/// How each part ended, in one word each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub connect: &'static str,
    /// `note`, a tool with an effect.
    pub first: &'static str,
    /// `echo`, afterwards.
    pub second: &'static str,
    /// Everything the client said on the way, for whoever reads a failure.
    pub said: String,
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {} / {} [{}]", self.connect, self.first, self.second, self.said)
    }
}

pub async fn run(cell: &Cell) -> Observed {
    let mut observed = Observed { connect: "", first: "-", second: "-", said: String::new() };
    let connection = match connect(&cell.spec(), cell.options()).await {
        Ok(connection) => connection,
        Err(error) => {
            observed.connect = connect_word(&error);
            observed.said = explain(&error);
            return observed;
        }
    };
    observed.connect = match connection.facts().revision.era() {
        Era::Stateless => "stateless",
        Era::Handshake => "handshake",
    };
    for (call, word) in [("note", &mut observed.first), ("echo", &mut observed.second)] {
        let began = Instant::now();
        let outcome = call_tool(&connection, call).await;
        *word = call_word(&outcome);
        if let Err(error) = &outcome {
            observed.said.push_str(&format!("{call}: {error} ({} ms); ", began.elapsed().as_millis()));
        }
    }
    observed.said.push_str(&format!("{:?}", connection.counters()));
    connection.close().await;
    observed
}

pub async fn call_tool(connection: &Connection, tool: &str) -> Result<ToolResult, CallError> {
    let arguments = match tool {
        "note" => r#"{"nonce":"n-1"}"#,
        _ => r#"{"text":"hello"}"#,
    };
    connection.call_tool(tool, &Raw::parse(arguments).unwrap(), CallOptions::default()).await
}

pub fn call_word(outcome: &Result<ToolResult, CallError>) -> &'static str {
    match outcome {
        Ok(result) if result.is_error => "tool-error",
        Ok(_) => "result",
        Err(CallError::Refused(_)) => "refused",
        Err(CallError::Protocol(_)) => "protocol",
        Err(CallError::TimedOut { .. }) => "timeout",
        Err(CallError::TooLarge { .. }) => "too-large",
        Err(CallError::TooComplex(_)) => "too-complex",
        Err(CallError::ServerGone(_)) => "gone",
        Err(CallError::OutcomeUnknown(_)) => "unknown",
        Err(CallError::Unsupported(_)) => "unsupported",
        Err(CallError::Busy) => "busy",
        Err(_) => "other",
    }
}

pub fn connect_word(error: &ConnectError) -> &'static str {
    match &error.cause {
        ConnectCause::Gone(_) => "gone",
        ConnectCause::TimedOut { .. } => "timeout",
        ConnectCause::Refused(_) => "refused",
        ConnectCause::NoCommonRevision(_) => "no-revision",
        ConnectCause::Protocol(_) => "protocol",
        ConnectCause::Spawn(_) => "spawn",
        ConnectCause::CommandNotFound { .. } => "not-found",
        ConnectCause::NotExecutable { .. } => "not-executable",
        ConnectCause::NoSuchDirectory { .. } => "no-directory",
        _ => "other",
    }
}

pub fn explain(error: &ConnectError) -> String {
    let steps: Vec<String> =
        error.trace.steps.iter().map(|step| format!("{} {:?}: {}", step.name, step.outcome, step.detail)).collect();
    format!("{error}; {}; stderr {:?}", steps.join(" > "), error.stderr)
}
