//! From the client's errors to what a person can do about them.

use std::borrow::Borrow;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use wharf_client::{CallError, ConnectCause, ConnectError, Connection, Exit, Gone, GoneCause};
use wharf_spec::{HttpSpec, ServerSpec, StdioSpec, Surroundings};

use super::{Failure, Kind, Report};

/// Lines of stderr that go with a failed call.
const STDERR_SHOWN: usize = 10;

const FOREIGN: &str = "is this a server that speaks MCP over stdio? run its command by itself and look";

impl Failure {
    /// A server that could not be connected.
    pub fn connecting(
        server: &str,
        spec: &ServerSpec,
        around: &Surroundings,
        failed: impl Borrow<ConnectError>,
    ) -> Self {
        let ConnectError { cause, trace, stderr } = failed.borrow();
        let gone = match cause {
            ConnectCause::Gone(gone) => Some(gone.as_ref()),
            _ => None,
        };
        let step = trace.failed();
        let error = Report {
            message: chain(cause),
            server: Some(server.to_owned()),
            step: step.map(|step| step.name),
            exit: gone.and_then(|gone| gone.exit),
            stderr: gone.map_or(stderr, |gone| if stderr.is_empty() { &gone.stderr } else { stderr }).clone(),
        };
        let hints = match spec {
            ServerSpec::Stdio(spec) => start_hints(cause, spec, around),
            ServerSpec::Http(spec) => dial_hints(cause, spec),
        };
        Self { kind: connect_kind(cause), error: Box::new(error), hints }
    }

    /// A call that got no answer, or a refusal.
    pub fn calling(connection: &Connection, failed: CallError) -> Self {
        let (kind, hint) = judge(&failed);
        let gone = failed.gone();
        let wants_stderr = matches!(failed, CallError::TimedOut { .. } | CallError::Protocol(_));
        let stderr = match gone {
            Some(gone) => gone.stderr.clone(),
            None if wants_stderr => connection.stderr_tail(STDERR_SHOWN),
            None => Vec::new(),
        };
        let error = Report {
            message: connection.redactor().redact_cut(&failed.to_string()).into_owned(),
            server: Some(connection.facts().name.clone()),
            step: None,
            exit: gone.and_then(|gone| gone.exit),
            stderr,
        };
        Self { kind, error: Box::new(error), hints: hint.map(str::to_owned).into_iter().collect() }
    }
}

/// A message and its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

fn connect_kind(cause: &ConnectCause) -> Kind {
    match cause {
        ConnectCause::TimedOut { .. } => Kind::TimedOut,
        ConnectCause::Gone(gone) if is_foreign(gone) => Kind::OffProtocol,
        ConnectCause::Refused(_) | ConnectCause::NoCommonRevision(_) | ConnectCause::Protocol(_) => Kind::OffProtocol,
        ConnectCause::Unauthorized { status: 401, .. } => Kind::LoginNeeded,
        ConnectCause::Unauthorized { .. } => Kind::Denied,
        ConnectCause::BadEndpoint { .. } => Kind::OffProtocol,
        ConnectCause::BadAddress(_) | ConnectCause::BadHeader(_) | ConnectCause::Net(_) => Kind::Usage,
        _ => Kind::Unreachable,
    }
}

const LOGIN: &str = "give a token with --header \"Authorization=Bearer TOKEN\"";

fn dial_hints(cause: &ConnectCause, spec: &HttpSpec) -> Vec<String> {
    let url = spec.shown_url();
    vec![match cause {
        ConnectCause::Unauthorized { status: 401, .. } => LOGIN.to_owned(),
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

fn unreachable_hint(gone: &Gone, url: &str) -> String {
    match &gone.cause {
        GoneCause::Unreachable { passing: false, .. } => {
            "a certificate authority of your own is trusted with --ca FILE; nothing turns the check off".to_owned()
        }
        GoneCause::Unreachable { .. } => format!("is the server running, and is {url} where it listens?"),
        GoneCause::Status(_) => "the server, or a proxy before it, is in trouble: try again in a while".to_owned(),
        _ => "run it again with --debug to see how far it got".to_owned(),
    }
}

fn start_hints(cause: &ConnectCause, spec: &StdioSpec, around: &Surroundings) -> Vec<String> {
    match cause {
        ConnectCause::CommandNotFound { program, searched } => not_found_hints(program, searched, around),
        ConnectCause::NotExecutable { program, error } => {
            vec![match error.kind() {
                io::ErrorKind::NotFound => "check the path; a relative one begins at --cwd".to_owned(),
                io::ErrorKind::PermissionDenied => {
                    format!("make it executable (chmod +x {}) or name its interpreter", program.display())
                }
                _ => "name its interpreter, as in --stdio \"python3 server.py\"".to_owned(),
            }]
        }
        ConnectCause::NoSuchDirectory { .. } => vec!["give an existing directory with --cwd".to_owned()],
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

/// Where it was looked for, and where it would have been found had it been looked for there.
fn not_found_hints(program: &Path, searched: &[PathBuf], around: &Surroundings) -> Vec<String> {
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

fn ended_hint(gone: &Gone, spec: &StdioSpec) -> String {
    match gone.exit {
        Some(Exit::Code(0)) => FOREIGN.to_owned(),
        Some(Exit::Signal(_)) => "it was killed: run its command by itself to see why".to_owned(),
        _ if spec.inherit_env => "run its command by itself to see what it needs".to_owned(),
        _ => {
            "the environment was cleared to a short list; name what it needs (`env` in its entry, --env NAME), or hand \
              all of it down (`inheritEnv`, --inherit-env)"
                .to_owned()
        }
    }
}

fn is_foreign(gone: &Gone) -> bool {
    matches!(gone.cause, GoneCause::NotMcp(_) | GoneCause::EndlessLine)
}

fn judge(failed: &CallError) -> (Kind, Option<&'static str>) {
    match failed {
        CallError::Refused(_) | CallError::Task(_) => (Kind::Refused, None),
        CallError::Unauthorized { status: 401, .. } => (Kind::LoginNeeded, Some(LOGIN)),
        CallError::Unauthorized { .. } => (Kind::Denied, None),
        CallError::Status { status: 429, .. } => (Kind::Refused, Some("try again in a while")),
        CallError::Status { .. } => (Kind::Refused, None),
        CallError::Declined(_) => (Kind::Denied, Some("run it again to be asked again")),
        CallError::TimedOut { .. } => (Kind::TimedOut, Some("--timeout SECONDS waits longer; the call was withdrawn")),
        CallError::ServerGone(_) => (Kind::Unreachable, Some("nothing was done; it is safe to try again")),
        CallError::OutcomeUnknown(_) => {
            (Kind::Unreachable, Some("look whether it was done before you try again: it may have been"))
        }
        CallError::Unsupported(_) => (Kind::Unsupported, Some("what a server offers is shown by its lists")),
        CallError::Invalid(_) => (Kind::Usage, None),
        CallError::TooManyRounds(_) => {
            (Kind::OffProtocol, Some("it will not be satisfied; --debug shows what it asks"))
        }
        CallError::Busy => (Kind::Other, Some("try again in a moment")),
        CallError::Protocol(_) | CallError::TooLarge { .. } | CallError::TooComplex(_) | CallError::Listing { .. } => {
            (Kind::OffProtocol, Some("run it again with --debug to see the messages"))
        }
        _ => (Kind::Other, None),
    }
}
