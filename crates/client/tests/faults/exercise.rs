//! What a user does with any server: connect, call a tool that writes, over HTTP also read something, call a tool that
//! does not write, close.

use std::fmt;
use std::time::{Duration, Instant};

use wharf_client::{CallError, ConnectCause, ConnectError, Connection, RequestOptions, connect, connect_http};
use wharf_wire::{Era, RawJson, ToolResult};

use crate::cell::Cell;
use crate::fixture::Fixture;

/// How each part ended, in one word each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub connect: &'static str,
    /// `note`, a tool with an effect.
    pub first: &'static str,
    /// Something that may be asked for again. Only over HTTP: elsewhere there is no way to lose one answer alone.
    pub read: &'static str,
    /// `echo`, afterwards.
    pub second: &'static str,
    /// How long connecting, `first` and `read` took.
    pub took: [Duration; 3],
    /// Everything the client said on the way, for whoever reads a failure.
    pub said: String,
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {} / {} / {} [{}]", self.connect, self.first, self.read, self.second, self.said)
    }
}

/// Exercises the fixture: the given one, or one that is started for the purpose.
pub async fn run(cell: &Cell, server: Option<&Fixture>) -> Observed {
    let began = Instant::now();
    let connected = match server {
        Some(server) => connect_http(&server.spec(), cell.options()).await,
        None => connect(&cell.spec(), cell.options()).await,
    };
    let mut observed = Observed {
        connect: "",
        first: "-",
        read: "-",
        second: "-",
        took: [began.elapsed(), Duration::ZERO, Duration::ZERO],
        said: String::new(),
    };
    match connected {
        Ok(connection) => {
            observed.connect = match connection.facts().revision.era() {
                Era::Stateless => "stateless",
                Era::Handshake => "handshake",
            };
            observed.call(&connection, server.is_some()).await;
        }
        Err(error) => {
            observed.connect = connect_word(&error);
            observed.said = explain(&error);
        }
    }
    observed
}

impl Observed {
    async fn call(&mut self, connection: &Connection, reads: bool) {
        let began = Instant::now();
        let first = call_tool(connection, "note").await;
        self.first = call_word(&first);
        self.took[1] = began.elapsed();
        self.note("note", first.err(), began);
        if reads {
            let began = Instant::now();
            let read = connection.read_resource("fault://greeting", RequestOptions::default()).await;
            self.read = word(&read);
            self.took[2] = began.elapsed();
            self.note("read", read.err(), began);
        }
        let began = Instant::now();
        let second = call_tool(connection, "echo").await;
        self.second = call_word(&second);
        self.note("echo", second.err(), began);
        self.said.push_str(&format!("{:?}", connection.counters()));
        connection.close().await;
    }

    fn note(&mut self, what: &str, error: Option<CallError>, began: Instant) {
        if let Some(error) = error {
            self.said.push_str(&format!("{what}: {error} ({} ms); ", began.elapsed().as_millis()));
        }
    }
}

pub async fn call_tool(connection: &Connection, tool: &str) -> Result<ToolResult, CallError> {
    let arguments = match tool {
        "note" => r#"{"nonce":"n-1"}"#,
        _ => r#"{"text":"hello"}"#,
    };
    connection.call_tool(tool, &RawJson::parse(arguments).unwrap(), RequestOptions::default()).await
}

pub fn call_word(outcome: &Result<ToolResult, CallError>) -> &'static str {
    match outcome {
        Ok(result) if result.is_error => "tool-error",
        other => word(other),
    }
}

pub fn word<T>(outcome: &Result<T, CallError>) -> &'static str {
    match outcome {
        Ok(_) => "result",
        Err(CallError::ErrorResponse(_)) => "refused",
        Err(CallError::Protocol(_)) => "protocol",
        Err(CallError::TimedOut { .. }) => "timeout",
        Err(CallError::TooLarge { .. }) => "too-large",
        Err(CallError::TooComplex(_)) => "too-complex",
        Err(CallError::RetryableDisconnect(_)) => "gone",
        Err(CallError::OutcomeUnknown(_)) => "unknown",
        Err(CallError::Unsupported(_)) => "unsupported",
        Err(CallError::Unauthorized { .. }) => "unauthorized",
        Err(CallError::Status { .. }) => "status",
        Err(CallError::TooManyRounds(_)) => "rounds",
        Err(CallError::Busy) => "busy",
        Err(_) => "other",
    }
}

pub fn connect_word(error: &ConnectError) -> &'static str {
    match &error.cause {
        ConnectCause::Gone(_) => "gone",
        ConnectCause::TimedOut { .. } => "timeout",
        ConnectCause::ErrorResponse(_) => "refused",
        ConnectCause::NoCommonRevision(_) => "no-revision",
        ConnectCause::Protocol(_) => "protocol",
        ConnectCause::Spawn(_) => "spawn",
        ConnectCause::CommandNotFound { .. } => "not-found",
        ConnectCause::NotExecutable { .. } => "not-executable",
        ConnectCause::NoSuchDirectory { .. } => "no-directory",
        ConnectCause::Unauthorized { .. } => "unauthorized",
        ConnectCause::Status { .. } => "status",
        ConnectCause::BadEndpoint { .. } => "bad-endpoint",
        _ => "other",
    }
}

pub fn explain(error: &ConnectError) -> String {
    let steps: Vec<String> =
        error.trace.steps.iter().map(|step| format!("{} {:?}: {}", step.name, step.outcome, step.detail)).collect();
    format!("{error}; {}; stderr {:?}", steps.join(" > "), error.stderr)
}
