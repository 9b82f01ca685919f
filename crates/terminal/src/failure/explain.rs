//! Converts client errors to failures with hints.

use std::borrow::Borrow;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use wharf_client::{
    AuthRecovery, CallError, ConnectCause, ConnectError, Connection, DisconnectCause, DisconnectReport, ProcessExit,
};
use wharf_spec::{Environment, HttpSpec, ServerSpec, StdioSpec, UntrustedText};

use super::{Failure, FailureKind, FailureReport};
use crate::accounts::has_own;
use crate::configured::of_project;
use crate::servers::is_address;

/// Maximum number of stderr lines of a failed call.
const STDERR_SHOWN: usize = 10;

const FOREIGN: &str = "is this a server that speaks MCP over stdio? run its command by itself and look";

/// Prefix of a hint to log in.
pub const LOG_IN: &str = "wharf auth";

/// Hint if the authorization server is unreachable.
const UNAVAILABLE: &str = "the authorization server cannot be reached: try again in a while";

/// Hint if a new login cannot resolve the problem.
const NO_LOGIN: &str =
    "logging in again changes nothing; what it says has to be mended, perhaps under `oauth` in its entry";

impl Failure {
    /// Creates the failure of a connection attempt.
    pub fn connecting(
        server: &str,
        spec: &ServerSpec,
        around: &Environment,
        failed: impl Borrow<ConnectError>,
    ) -> Self {
        let ConnectError { cause, trace, stderr } = failed.borrow();
        let gone = match cause {
            ConnectCause::Gone(gone) => Some(gone.as_ref()),
            _ => None,
        };
        let step = trace.failed();
        let error = FailureReport {
            message: chain(cause),
            server: Some(server.to_owned()),
            step: step.map(|step| step.name),
            exit: gone.and_then(|gone| gone.exit),
            stderr: gone.map_or(stderr, |gone| if stderr.is_empty() { &gone.stderr } else { stderr }).clone(),
        };
        let hints = match spec {
            _ if matches!(cause, ConnectCause::NotApproved(_)) => vec![approve_hint(server)],
            ServerSpec::Stdio(spec) => start_hints(cause, spec, around),
            ServerSpec::Http(spec) => dial_hints(server, cause, spec),
        };
        Self { kind: connect_kind(cause), error: Box::new(error), hints }
    }

    /// Creates the failure of a call.
    pub fn calling(connection: &Connection, failed: CallError) -> Self {
        let (kind, hint) = judge(&failed, &connection.facts().name);
        let gone = failed.gone();
        let wants_stderr = matches!(failed, CallError::TimedOut { .. } | CallError::Protocol(_));
        let stderr = match gone {
            Some(gone) => gone.stderr.clone(),
            None if wants_stderr => connection.stderr_tail(STDERR_SHOWN),
            None => Vec::new(),
        };
        let error = FailureReport {
            message: connection.redactor().redact_cut(&failed.to_string()).into_owned(),
            server: Some(connection.facts().name.clone()),
            step: None,
            exit: gone.and_then(|gone| gone.exit),
            stderr,
        };
        Self { kind, error: Box::new(error), hints: hint.into_iter().collect() }
    }
}

/// Joins an error and its sources.
pub fn chain(error: &dyn Error) -> String {
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
        ConnectCause::Gone(gone) if is_foreign(gone) => FailureKind::OffProtocol,
        ConnectCause::Refused(_) | ConnectCause::NoCommonRevision(_) | ConnectCause::Protocol(_) => {
            FailureKind::OffProtocol
        }
        cause if cause.needs_login() => FailureKind::LoginNeeded,
        cause if is_waiting(cause) => FailureKind::Unreachable,
        ConnectCause::Unauthorized { .. } => FailureKind::Denied,
        ConnectCause::BadEndpoint { .. } => FailureKind::OffProtocol,
        ConnectCause::NotApproved(_) => FailureKind::Denied,
        ConnectCause::BadAddress(_) | ConnectCause::BadHeader(_) | ConnectCause::Net(_) => FailureKind::Usage,
        _ => FailureKind::Unreachable,
    }
}

/// Returns the hint to log in, or to replace the given token.
fn login_hint(server: &str, spec: &HttpSpec) -> String {
    match has_own(spec) {
        true => "it does not take the `Authorization` it was given: another token is needed".to_owned(),
        false => format!("{LOG_IN} {} logs you in", login_words(server, spec)),
    }
}

/// Returns the arguments of `wharf auth` that log in to a server with the configured account.
pub fn login_words(server: &str, spec: &HttpSpec) -> String {
    let word = match &spec.login_key {
        Some(key) if is_address(key) => shell_word(&spec.shown_url()),
        Some(key) if of_project(key).is_some() => server.to_owned(),
        Some(key) => shell_word(key),
        None => server.to_owned(),
    };
    match spec.account.as_deref().unwrap_or_default() {
        "" => word,
        account => format!("{word} --account {}", shell_word(account)),
    }
}

/// Escapes and quotes a text as one shell word.
fn shell_word(text: &str) -> String {
    let shown = UntrustedText::new(text).to_string();
    shlex::try_quote(&shown).map(|quoted| quoted.into_owned()).unwrap_or_default()
}

fn is_waiting(cause: &ConnectCause) -> bool {
    cause.not_authorized().is_some_and(|why| why.remedy == AuthRecovery::Waiting)
}

fn dial_hints(server: &str, cause: &ConnectCause, spec: &HttpSpec) -> Vec<String> {
    let url = spec.shown_url();
    vec![match cause {
        cause if is_waiting(cause) => UNAVAILABLE.to_owned(),
        cause if cause.not_authorized().is_some_and(|why| why.remedy == AuthRecovery::Reading) => NO_LOGIN.to_owned(),
        cause if cause.needs_login() => login_hint(server, spec),
        ConnectCause::Unauthorized { .. } => {
            "it knows who asks and says no: another token, or another account".to_owned()
        }
        ConnectCause::Gone(gone) => unreachable_hint(gone, &url),
        ConnectCause::Status { status: 404 | 405, .. } => {
            format!("is `{}` the right path? many servers answer at /mcp or /sse", spec.url.path())
        }
        ConnectCause::Status { status: 429 | 503, .. } => "it is busy: try again in a while".to_owned(),
        ConnectCause::TimedOut { .. } => "--timeout SECONDS waits longer; --debug shows how far it got".to_owned(),
        ConnectCause::BadEndpoint { .. } => {
            "it would have what you say sent elsewhere; its owner has to mend that".to_owned()
        }
        ConnectCause::BadAddress(_) | ConnectCause::BadHeader(_) | ConnectCause::Net(_) => {
            "wharf tools --help shows how --url, --header, --ca and --proxy are written".to_owned()
        }
        ConnectCause::Protocol(_) => {
            format!("is there an MCP server at {url}? look at it with a browser, or with --debug")
        }
        _ => "run it again with --debug to see the messages".to_owned(),
    }]
}

fn unreachable_hint(gone: &DisconnectReport, url: &str) -> String {
    match &gone.cause {
        DisconnectCause::Unreachable { passing: false, .. } => {
            "a certificate authority of your own is trusted with --ca FILE; nothing turns the check off".to_owned()
        }
        DisconnectCause::Unreachable { .. } => format!("is the server running, and is {url} where it listens?"),
        DisconnectCause::Status(_) => {
            "the server, or a proxy before it, is in trouble: try again in a while".to_owned()
        }
        _ => "run it again with --debug to see how far it got".to_owned(),
    }
}

fn approve_hint(server: &str) -> String {
    format!("`wharf approve {server}` shows what would run now and what has changed, and asks you")
}

fn start_hints(cause: &ConnectCause, spec: &StdioSpec, around: &Environment) -> Vec<String> {
    match cause {
        ConnectCause::CommandNotFound { program, searched } => not_found_hints(program, searched, around),
        ConnectCause::NotExecutable { program, error } => {
            vec![match error.kind() {
                io::ErrorKind::NotFound => {
                    "check the path: in an entry a relative one begins at the entry's file, after --stdio at --cwd"
                        .to_owned()
                }
                io::ErrorKind::PermissionDenied => {
                    format!("make it executable (chmod +x {}) or name its interpreter", program.display())
                }
                _ => "name its interpreter, as in --stdio \"python3 server.py\"".to_owned(),
            }]
        }
        ConnectCause::NoSuchDirectory { .. } => {
            vec!["make the directory, or give another by `cwd` in the entry or --cwd".to_owned()]
        }
        ConnectCause::Gone(gone) if is_foreign(gone) => {
            vec![FOREIGN.to_owned()]
        }
        ConnectCause::Gone(gone) => vec![ended_hint(gone, spec)],
        ConnectCause::TimedOut { .. } => vec![
            "--timeout SECONDS gives it longer to get ready".to_owned(),
            "is this a server that speaks MCP over stdio? --debug shows what it says".to_owned(),
        ],
        ConnectCause::Spawn(_) => vec!["the system refused; is there memory, and room for another process?".to_owned()],
        _ => vec!["run it again with --debug to see the messages".to_owned()],
    }
}

/// Returns the searched directories. If the program is in a PATH directory that was skipped, names it instead.
fn not_found_hints(program: &Path, searched: &[PathBuf], around: &Environment) -> Vec<String> {
    let path = around.var("PATH").cloned().unwrap_or_default();
    let skipped = std::env::split_paths(&path).filter(|place| !searched.contains(place));
    if let Some(found) = skipped.map(|place| around.cwd.join(place).join(program)).find(|file| file.is_file()) {
        let found = found.display();
        return vec![format!(
            "there is `{found}`, inside the working directory, where PATH is not trusted; name it in full"
        )];
    }
    let mut places: Vec<String> = Vec::new();
    for place in searched.iter().map(|place| place.display().to_string()) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let looked = if places.is_empty() { "nowhere: PATH is empty".to_owned() } else { places.join(", ") };
    vec!["check the spelling or give a full path".to_owned(), format!("it was looked for in {looked}")]
}

fn ended_hint(gone: &DisconnectReport, spec: &StdioSpec) -> String {
    match gone.exit {
        Some(ProcessExit::Code(0)) => FOREIGN.to_owned(),
        Some(ProcessExit::Signal(_)) => "it was killed: run its command by itself to see why".to_owned(),
        _ if spec.inherit_env => "run its command by itself to see what it needs".to_owned(),
        _ => {
            "the environment was cleared to a short list; name what it needs (`env` in its entry, --env NAME), or hand \
              all of it down (`inheritEnv`, --inherit-env)"
                .to_owned()
        }
    }
}

fn is_foreign(gone: &DisconnectReport) -> bool {
    matches!(gone.cause, DisconnectCause::NotMcp(_) | DisconnectCause::EndlessLine)
}

fn judge(failed: &CallError, server: &str) -> (FailureKind, Option<String>) {
    if let CallError::Unauthorized { .. } = failed {
        return judge_authorization(failed, server);
    }
    let (kind, hint) = judge_answer(failed);
    (kind, hint.map(str::to_owned))
}

fn judge_authorization(failed: &CallError, server: &str) -> (FailureKind, Option<String>) {
    let hint = match failed.not_authorized().map(|why| &why.remedy) {
        Some(AuthRecovery::Scope(scope)) => format!("{LOG_IN} {server} --scope {} asks for more", shell_word(scope)),
        Some(AuthRecovery::Waiting) => return (FailureKind::Unreachable, Some(UNAVAILABLE.to_owned())),
        Some(AuthRecovery::Reading) if failed.needs_login() => NO_LOGIN.to_owned(),
        _ if failed.needs_login() => format!("{LOG_IN} {server} logs you in"),
        _ => return (FailureKind::Denied, None),
    };
    (FailureKind::LoginNeeded, Some(hint))
}

fn judge_answer(failed: &CallError) -> (FailureKind, Option<&'static str>) {
    match failed {
        CallError::Refused(_) | CallError::Task(_) => (FailureKind::Refused, None),
        CallError::Status { status: 429, .. } => (FailureKind::Refused, Some("try again in a while")),
        CallError::Status { .. } => (FailureKind::Refused, None),
        CallError::Declined(_) => (FailureKind::Denied, Some("run it again to be asked again")),
        CallError::TimedOut { .. } => {
            (FailureKind::TimedOut, Some("--timeout SECONDS waits longer; the call was withdrawn"))
        }
        CallError::ServerGone(_) => (FailureKind::Unreachable, Some("nothing was done; it is safe to try again")),
        CallError::OutcomeUnknown(_) => {
            (FailureKind::Unreachable, Some("look whether it was done before you try again: it may have been"))
        }
        CallError::Unsupported(_) => (FailureKind::Unsupported, Some("what a server offers is shown by its lists")),
        CallError::Invalid(_) => (FailureKind::Usage, None),
        CallError::TooManyRounds(_) => {
            (FailureKind::OffProtocol, Some("it will not be satisfied; --debug shows what it asks"))
        }
        CallError::Busy => (FailureKind::Other, Some("try again in a moment")),
        CallError::Discarded(_) => (FailureKind::Other, Some("make fewer calls with large results at once")),
        CallError::Protocol(_) | CallError::TooLarge { .. } | CallError::TooComplex(_) | CallError::Listing { .. } => {
            (FailureKind::OffProtocol, Some("run it again with --debug to see the messages"))
        }
        _ => (FailureKind::Other, None),
    }
}

#[cfg(test)]
mod tests {
    use wharf_client::NotAuthorized;

    use super::*;

    #[test]
    fn only_where_a_login_helps_is_there_a_hint_to_log_in() {
        let mut spec = HttpSpec::new("https://h.example/mcp".parse().unwrap());
        for (remedy, kind, part) in [
            (AuthRecovery::Login, FailureKind::LoginNeeded, "wharf auth docs logs you in"),
            (AuthRecovery::Waiting, FailureKind::Unreachable, UNAVAILABLE),
            (AuthRecovery::Reading, FailureKind::LoginNeeded, NO_LOGIN),
        ] {
            let why = Some(Box::new(NotAuthorized { remedy, reason: "why".to_owned() }));
            let cause = ConnectCause::Unauthorized { status: 401, challenge: None, why };
            assert_eq!((connect_kind(&cause), dial_hints("docs", &cause, &spec)), (kind, vec![part.to_owned()]));
        }
        spec.account = Some("my work\u{1b}".to_owned());
        assert_eq!(login_words("docs", &spec), "docs --account \"my work\\\\u{1b}\"");
    }
}
