//! Converts client errors to failures with hints.

use std::borrow::{Borrow, Cow};
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wharf::{HostError, ServerError, ServerState};
use wharf_client::{
    AuthRecovery, CallError, ConnectCause, ConnectError, Connection, DisconnectCause, DisconnectReport, ProcessExit,
};
use wharf_net::NetOpenError;
use wharf_spec::{Environment, HttpSpec, ServerSpec, StdioSpec, UntrustedText};
use wharf_wire::{RawJson, RpcError};

use super::{Failure, FailureKind, FailureReport, mentions_variable};
use crate::accounts::has_own_credentials;
use crate::config_context::split_project_key;
use crate::servers::is_address;

/// Maximum number of stderr lines of a failed call.
const MAX_STDERR_LINES: usize = 10;

const NOT_MCP_HINT: &str = "check that this is an MCP server over stdio: run its command manually";

/// Start of a hint to wait longer.
pub const TIMEOUT_OPTION: &str = "--timeout";

/// Prefix of a hint to log in.
pub const LOGIN_COMMAND: &str = "wharf auth";

/// Hint to send a token to a server given by its URL.
const URL_TOKEN_HINT: &str = "--header 'Authorization=Bearer TOKEN' sends a token instead";

/// Hint to send a token to a configured server.
const ENTRY_TOKEN_HINT: &str =
    "`headers` in its entry (or wharf add … --header 'Authorization=Bearer TOKEN') sends a token instead";

/// Hint if the authorization server is unreachable.
const AUTH_SERVER_UNREACHABLE: &str = "the authorization server is unreachable; retry later";

/// Hint if a new login cannot resolve the problem.
const LOGIN_WILL_NOT_HELP: &str =
    "logging in again will not help; fix the reported problem, e.g. under `oauth` in its entry";

impl Failure {
    /// Creates the failure of a connection attempt.
    pub fn from_connect_error(
        server: &str,
        spec: &ServerSpec,
        environment: &Environment,
        failed: impl Borrow<ConnectError>,
    ) -> Self {
        let ConnectError { cause, trace, stderr } = failed.borrow();
        let gone = match cause {
            ConnectCause::Gone(gone) => Some(gone.as_ref()),
            _ => None,
        };
        let step = trace.failed_step();
        let refused = match cause {
            ConnectCause::ErrorResponse(error) => Some(error),
            _ => None,
        };
        let error = FailureReport {
            message: error_chain(cause),
            server: Some(server.to_owned()),
            code: refused.map(|error| error.code),
            data: refused.and_then(|error| error.data.clone()),
            step: step.map(|step| step.name),
            exit: gone.and_then(|gone| gone.exit),
            stderr: gone.map_or(stderr, |gone| if stderr.is_empty() { &gone.stderr } else { stderr }).clone(),
        };
        let hints = match spec {
            _ if matches!(cause, ConnectCause::NotApproved(_)) => vec![approve_hint(server)],
            ServerSpec::Stdio(spec) => start_hints(cause, spec, environment),
            ServerSpec::Http(spec) => dial_hints(server, cause, spec),
        };
        Self { kind: connect_kind(cause), error: Box::new(error), hints }
    }

    /// Creates the failure of a server that is not available.
    pub fn from_server_error(
        server: &str,
        spec: Option<&ServerSpec>,
        environment: &Environment,
        error: &ServerError,
    ) -> Self {
        if let (ServerError::NotConnected(error), Some(spec)) = (error, spec) {
            return Self::from_connect_error(server, spec, environment, &**error);
        }
        let (kind, hints) = match error {
            ServerError::LoginRequired(error) => classify_call_error(error, server),
            _ => (FailureKind::Unreachable, Vec::new()),
        };
        let mut failure = Self::new(kind, error).about_server(server);
        failure.hints.extend(hints);
        if let ServerError::Lost(gone) = error {
            failure.error.exit = gone.exit;
        }
        failure.error.stderr = error.stderr().to_vec();
        failure
    }

    /// Creates the failure of an operation on a host, except for calls, which need the connection.
    pub fn from_host_error(
        server: &str,
        spec: Option<&ServerSpec>,
        environment: &Environment,
        error: &HostError,
    ) -> Self {
        if let Some(error) = unavailable_error(error) {
            return Self::from_server_error(server, spec, environment, error);
        }
        match error {
            HostError::Call { error, .. } => Self::new(FailureKind::Unreachable, error).about_server(server),
            HostError::Denied(refusal) => Self::from_refusal(refusal).about_server(server),
            HostError::NotInTime { after, .. } => Self::new(FailureKind::TimedOut, error)
                .with_hint(format_args!("{} waits longer", longer_timeout(*after)))
                .about_server(server),
            HostError::Unavailable { state: ServerState::Unapproved, .. } => Self::new(FailureKind::Denied, error)
                .about_server(server)
                .with_hint(format_args!("wharf approve {server}")),
            HostError::UnknownServer { .. } => {
                Self::usage(error).with_hint("`wharf list` shows the configured servers")
            }
            HostError::UnknownTool { .. } | HostError::Unresolved(_) => {
                Self::usage(error).with_hint(format_args!("`wharf tools {server}` lists its tools"))
            }
            HostError::NotSaved(_) => Self::other(error)
                .about_server(server)
                .with_hint("check the free space and the permissions of XDG_STATE_HOME, and repeat the command"),
            _ => Self::new(FailureKind::Unreachable, error).about_server(server),
        }
    }

    /// Creates the failure of a call.
    pub fn from_call_error(connection: &Connection, failed: CallError) -> Self {
        let (kind, hints) = classify_call_error(&failed, &connection.facts().name);
        let gone = failed.disconnect_report();
        let wants_stderr = matches!(failed, CallError::TimedOut { .. } | CallError::Protocol(_));
        let stderr = match gone {
            Some(gone) => gone.stderr.clone(),
            None if wants_stderr => connection.stderr_tail(MAX_STDERR_LINES),
            None => Vec::new(),
        };
        let refused = match &failed {
            CallError::ErrorResponse(error) => Some(error),
            _ => None,
        };
        let error = FailureReport {
            code: refused.map(|error| error.code),
            data: refused.and_then(|error| redacted_data(connection, error)),
            message: connection.redactor().redact_truncated(&failed.to_string()).into_owned(),
            server: Some(connection.facts().name.clone()),
            step: None,
            exit: gone.and_then(|gone| gone.exit),
            stderr,
        };
        Self { kind, error: Box::new(error), hints }
    }
}

/// Returns the data of an error without the server's secrets.
fn redacted_data(connection: &Connection, error: &RpcError) -> Option<RawJson> {
    let data = error.data.as_ref()?;
    match connection.redactor().redact(data.as_str()) {
        Cow::Borrowed(_) => Some(data.clone()),
        // A secret that is a number leaves invalid JSON behind, which becomes a string.
        Cow::Owned(masked) => RawJson::parse(masked.clone()).or_else(|_| RawJson::from_value(&masked)).ok(),
    }
}

/// Joins an error and its sources.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

fn connect_kind(cause: &ConnectCause) -> FailureKind {
    match cause {
        ConnectCause::TimedOut { .. } => FailureKind::TimedOut,
        cause if cause.is_not_mcp() => FailureKind::OffProtocol,
        ConnectCause::ErrorResponse(_) | ConnectCause::NoCommonRevision(_) | ConnectCause::Protocol(_) => {
            FailureKind::OffProtocol
        }
        cause if cause.needs_login() => FailureKind::LoginNeeded,
        cause if is_auth_server_down(cause) => FailureKind::Unreachable,
        ConnectCause::Unauthorized { .. } => FailureKind::Denied,
        ConnectCause::BadEndpoint { .. } => FailureKind::OffProtocol,
        ConnectCause::NotApproved(_) => FailureKind::Denied,
        ConnectCause::Net(NetOpenError::Encryption(_)) => FailureKind::Unreachable,
        ConnectCause::BadAddress(_) | ConnectCause::BadHeader(_) | ConnectCause::Net(_) => FailureKind::Usage,
        _ => FailureKind::Unreachable,
    }
}

/// Returns the hints to log in or to send a token, or the hint to replace the given token.
fn login_hints(server: &str, spec: &HttpSpec) -> Vec<String> {
    if has_own_credentials(spec) {
        return vec!["the configured `Authorization` was rejected; set another token".to_owned()];
    }
    let token_hint = match &spec.login_key {
        Some(key) if is_address(key) => URL_TOKEN_HINT,
        _ => ENTRY_TOKEN_HINT,
    };
    vec![format!("{LOGIN_COMMAND} {} logs you in", login_arguments(server, spec)), token_hint.to_owned()]
}

/// Returns the arguments of `wharf auth` that log in to a server with the configured account.
pub fn login_arguments(server: &str, spec: &HttpSpec) -> String {
    let word = match &spec.login_key {
        Some(key) if is_address(key) => shell_word(&spec.masked_url()),
        Some(key) if split_project_key(key).is_some() => server.to_owned(),
        Some(key) => shell_word(key),
        None => server.to_owned(),
    };
    match spec.account.as_deref().unwrap_or_default() {
        "" => word,
        account => format!("{word} --account {}", shell_word(account)),
    }
}

/// Escapes and quotes a text as one shell word.
pub fn shell_word(text: &str) -> String {
    let shown = UntrustedText::new(text).to_string();
    shlex::try_quote(&shown).map(|quoted| quoted.into_owned()).unwrap_or_default()
}

fn is_auth_server_down(cause: &ConnectCause) -> bool {
    cause.not_authorized().is_some_and(|why| why.remedy == AuthRecovery::Waiting)
}

fn dial_hints(server: &str, cause: &ConnectCause, spec: &HttpSpec) -> Vec<String> {
    let url = spec.masked_url();
    vec![match cause {
        cause if is_auth_server_down(cause) => AUTH_SERVER_UNREACHABLE.to_owned(),
        cause if cause.not_authorized().is_some_and(|why| why.remedy == AuthRecovery::Reading) => {
            LOGIN_WILL_NOT_HELP.to_owned()
        }
        cause if cause.needs_login() => return login_hints(server, spec),
        ConnectCause::Unauthorized { .. } => "access denied for this account; use another token or account".to_owned(),
        ConnectCause::Gone(gone) => unreachable_hint(gone, &url),
        ConnectCause::Status { status: 404 | 405, .. } => {
            format!("check the path `{}`; many servers use /mcp or /sse", spec.url.path())
        }
        ConnectCause::Status { status: 429 | 503, .. } => "the server is busy; retry later".to_owned(),
        ConnectCause::TimedOut { after, .. } => {
            format!("{} waits longer; --debug shows the messages", longer_timeout(*after))
        }
        ConnectCause::BadEndpoint { .. } => {
            "the server redirects messages to another origin; its operator has to fix this".to_owned()
        }
        ConnectCause::BadAddress(_) | ConnectCause::BadHeader(_) | ConnectCause::Net(_) => {
            "wharf tools --help shows how --url, --header, --ca and --proxy are written".to_owned()
        }
        ConnectCause::Protocol(_) => {
            format!("check that {url} is an MCP server, with a browser or --debug")
        }
        _ => "run again with --debug to see the messages".to_owned(),
    }]
}

fn unreachable_hint(gone: &DisconnectReport, url: &str) -> String {
    match &gone.cause {
        DisconnectCause::Unreachable { passing: false, .. } => {
            "--ca FILE trusts your own certificate authority, or a self-signed certificate made with \
             `-addext basicConstraints=critical,CA:FALSE`; verification cannot be disabled"
                .to_owned()
        }
        DisconnectCause::Unreachable { .. } => format!("check that the server is running and listens at {url}"),
        DisconnectCause::Status(_) => "the server or a proxy in front of it has a problem; retry later".to_owned(),
        _ => "run again with --debug to see the messages".to_owned(),
    }
}

/// Returns the error that made a server unavailable.
pub fn unavailable_error(error: &HostError) -> Option<&ServerError> {
    match error {
        HostError::Unavailable { last_error, .. } | HostError::NotInTime { last_error, .. } => last_error.as_deref(),
        _ => None,
    }
}

fn approve_hint(server: &str) -> String {
    format!("`wharf approve {server}` shows the changes and asks for approval")
}

fn start_hints(cause: &ConnectCause, spec: &StdioSpec, environment: &Environment) -> Vec<String> {
    match cause {
        ConnectCause::CommandNotFound { program, searched } => not_found_hints(program, searched, environment),
        ConnectCause::NotExecutable { program, error } => {
            vec![match error.kind() {
                io::ErrorKind::NotFound => {
                    "check the path: it is relative to the entry's file, or after --stdio to --cwd".to_owned()
                }
                io::ErrorKind::PermissionDenied => {
                    format!("make it executable (chmod +x {}) or give its interpreter", program.display())
                }
                _ => "give its interpreter, as in --stdio \"python3 server.py\"".to_owned(),
            }]
        }
        ConnectCause::NoSuchDirectory { .. } => {
            vec!["create the directory, or set another with `cwd` in the entry or --cwd".to_owned()]
        }
        ConnectCause::Gone(_) | ConnectCause::TimedOut { .. } if cause.is_not_mcp() => vec![NOT_MCP_HINT.to_owned()],
        ConnectCause::Gone(gone) => vec![exit_hint(gone, spec)],
        ConnectCause::TimedOut { after, .. } => vec![
            format!("{} allows more time for startup", longer_timeout(*after)),
            "check that this is an MCP server over stdio; --debug shows its output".to_owned(),
        ],
        ConnectCause::Spawn(error) if error.kind() == io::ErrorKind::NotFound => {
            vec!["starting a process needs `/proc` and `/dev/null`; check that both exist here".to_owned()]
        }
        ConnectCause::Spawn(_) => {
            vec!["the system could not start a process; check memory and process limits".to_owned()]
        }
        _ => vec!["run again with --debug to see the messages".to_owned()],
    }
}

/// Returns the option `--timeout` with twice the time that was not enough.
fn longer_timeout(after: Duration) -> String {
    let millis = after.as_millis().max(1).saturating_mul(2);
    match millis % 1000 {
        0 => format!("{TIMEOUT_OPTION} {}", millis / 1000),
        _ => format!("{TIMEOUT_OPTION} {millis}ms"),
    }
}

/// Returns the searched directories. If the program is in a PATH directory that was skipped, names it instead.
fn not_found_hints(program: &Path, searched: &[PathBuf], environment: &Environment) -> Vec<String> {
    let path = environment.var("PATH").cloned().unwrap_or_default();
    let skipped = std::env::split_paths(&path).filter(|place| !searched.contains(place));
    if let Some(found) = skipped.map(|place| environment.cwd.join(place).join(program)).find(|file| file.is_file()) {
        let found = found.display();
        return vec![format!(
            "`{found}` was skipped because PATH entries inside the working directory are not trusted; give its full path"
        )];
    }
    let mut places: Vec<String> = Vec::new();
    for place in searched.iter().map(|place| place.display().to_string()) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let looked = if places.is_empty() { "no directory (PATH is empty)".to_owned() } else { places.join(", ") };
    vec!["check the spelling or give a full path".to_owned(), format!("searched in {looked}")]
}

fn exit_hint(gone: &DisconnectReport, spec: &StdioSpec) -> String {
    match gone.exit {
        Some(ProcessExit::Code(0)) => NOT_MCP_HINT.to_owned(),
        Some(ProcessExit::Signal(_)) => "the process was killed; run its command manually to see why".to_owned(),
        _ if spec.inherit_env || !mentions_variable(&gone.stderr) => {
            "run its command manually to see the cause".to_owned()
        }
        _ => "the server gets a minimal environment; pass the variables it needs (`env` in its entry, --env NAME) or \
              the whole environment (`inheritEnv`, --inherit-env)"
            .to_owned(),
    }
}

fn classify_call_error(failed: &CallError, server: &str) -> (FailureKind, Vec<String>) {
    if let CallError::Unauthorized { .. } = failed {
        return classify_unauthorized(failed, server);
    }
    let (kind, hint) = classify_other_error(failed);
    (kind, hint.into_iter().map(str::to_owned).collect())
}

fn classify_unauthorized(failed: &CallError, server: &str) -> (FailureKind, Vec<String>) {
    let hint = match failed.not_authorized().map(|why| &why.remedy) {
        Some(AuthRecovery::Scope(scope)) => {
            format!("{LOGIN_COMMAND} {server} --scope {} requests the missing scope", shell_word(scope))
        }
        Some(AuthRecovery::Waiting) => return (FailureKind::Unreachable, vec![AUTH_SERVER_UNREACHABLE.to_owned()]),
        Some(AuthRecovery::Reading) if failed.needs_login() => LOGIN_WILL_NOT_HELP.to_owned(),
        _ if failed.needs_login() => {
            let login = format!("{LOGIN_COMMAND} {server} logs you in");
            return (FailureKind::LoginNeeded, vec![login, ENTRY_TOKEN_HINT.to_owned()]);
        }
        _ => return (FailureKind::Denied, Vec::new()),
    };
    (FailureKind::LoginNeeded, vec![hint])
}

fn classify_other_error(failed: &CallError) -> (FailureKind, Option<&'static str>) {
    match failed {
        CallError::ErrorResponse(_) | CallError::Task(_) => (FailureKind::Refused, None),
        CallError::Status { status: 429, .. } => (FailureKind::Refused, Some("retry later")),
        CallError::Status { .. } => (FailureKind::Refused, None),
        CallError::Declined(_) => (FailureKind::Denied, Some("run again to be asked again")),
        CallError::TimedOut { .. } => {
            (FailureKind::TimedOut, Some("the call was cancelled; --timeout SECONDS waits longer"))
        }
        CallError::RetryableDisconnect(_) => {
            (FailureKind::Unreachable, Some("the call was not executed; it is safe to retry"))
        }
        CallError::OutcomeUnknown(_) => {
            (FailureKind::Unreachable, Some("check whether the action took effect before retrying"))
        }
        CallError::Unsupported(_) => {
            (FailureKind::Unsupported, Some("list the server's tools, resources and prompts to see what it supports"))
        }
        CallError::Invalid(_) => (FailureKind::Usage, None),
        CallError::TooManyRounds(_) => {
            (FailureKind::OffProtocol, Some("the server keeps asking for input; --debug shows its requests"))
        }
        CallError::Busy => (FailureKind::Other, Some("retry in a moment")),
        CallError::Discarded(_) => (FailureKind::Other, Some("make fewer calls with large results at once")),
        CallError::TooLarge { .. } => {
            (FailureKind::OffProtocol, Some("`maxMessageBytes` in the server's entry raises the limit"))
        }
        CallError::Protocol(_) | CallError::TooComplex(_) | CallError::Listing { .. } => {
            (FailureKind::OffProtocol, Some("run again with --debug to see the messages"))
        }
        _ => (FailureKind::Other, None),
    }
}

#[cfg(test)]
mod tests {
    use wharf_client::NotAuthorized;

    use super::*;

    /// U9.
    #[test]
    fn environment_hint_is_shown_only_for_missing_variables() {
        let spec = StdioSpec::default();
        for (line, is_expected) in [
            ("boom: missing API key", true),
            ("error: GITHUB_PERSONAL_ACCESS_TOKEN is required", true),
            ("KeyError: 'DATABASE_URL'", true),
            ("HOME: unbound variable", true),
            ("SyntaxError: invalid syntax", false),
            ("ModuleNotFoundError: No module named 'mcp'", false),
            ("usage: server [--stdio]", false),
            ("", false),
        ] {
            let (cause, stderr) = (DisconnectCause::Exited, vec![line.to_owned()]);
            let gone = DisconnectReport { cause, exit: Some(ProcessExit::Code(1)), stderr, hint: None };
            assert_eq!(exit_hint(&gone, &spec).contains("minimal environment"), is_expected, "{line}");
        }
    }

    /// G4.
    #[test]
    fn timeout_hint_names_a_longer_time() {
        let (spec, environment) = (StdioSpec::default(), Environment::default());
        let hints = |after, hint| start_hints(&ConnectCause::TimedOut { after, hint }, &spec, &environment);
        assert_eq!(hints(Duration::from_secs(60), None)[0], "--timeout 120 allows more time for startup");
        assert_eq!(hints(Duration::from_millis(700), None)[0], "--timeout 1400ms allows more time for startup");
        assert_eq!(hints(Duration::from_millis(1500), None)[0], "--timeout 3 allows more time for startup");
        let noise = Some("server wrote a line to stdout that is not a message: Welcome".to_owned());
        assert_eq!(hints(Duration::from_secs(60), noise), [NOT_MCP_HINT]);
    }

    /// G10.
    #[test]
    fn missing_system_file_is_not_a_limit() {
        let (spec, environment) = (StdioSpec::default(), Environment::default());
        for (kind, part) in
            [(io::ErrorKind::NotFound, "`/proc` and `/dev/null`"), (io::ErrorKind::WouldBlock, "limits")]
        {
            let hints = start_hints(&ConnectCause::Spawn(kind.into()), &spec, &environment);
            assert!(hints.len() == 1 && hints[0].contains(part), "{kind}: {hints:?}");
        }
    }

    #[test]
    fn login_hint_is_shown_only_if_a_login_helps() {
        let mut spec = HttpSpec::new("https://h.example/mcp".parse().unwrap());
        for (remedy, kind, hints) in [
            (AuthRecovery::Login, FailureKind::LoginNeeded, &["wharf auth docs logs you in", ENTRY_TOKEN_HINT][..]),
            (AuthRecovery::Waiting, FailureKind::Unreachable, &[AUTH_SERVER_UNREACHABLE]),
            (AuthRecovery::Reading, FailureKind::LoginNeeded, &[LOGIN_WILL_NOT_HELP]),
        ] {
            let why = Some(Box::new(NotAuthorized { remedy, reason: "why".to_owned() }));
            let cause = ConnectCause::Unauthorized { status: 401, challenge: None, why };
            assert_eq!(connect_kind(&cause), kind);
            assert_eq!(dial_hints("docs", &cause, &spec), hints);
        }
        spec.account = Some("my work\u{1b}".to_owned());
        assert_eq!(login_arguments("docs", &spec), "docs --account \"my work\\\\u{1b}\"");
    }
}
