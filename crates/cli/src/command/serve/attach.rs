//! Attaches a client on stdin and stdout to the gateway that runs for this user, and starts one if none runs.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::time::timeout;
use wharf_spec::UntrustedText;
use wharf_store::LockFile;
use wharf_terminal::failure::{Failure, FailureKind};
use wharf_terminal::gateway_socket::{
    AttachRequest, GatewayConnection, GatewayPlace, GatewayReply, GatewayRequest, TakeoverStart,
};
use wharf_terminal::session::CommandSession;

use super::BackgroundStep;
use super::gateway_process::READY_LINE;

/// Maximum number of gateways that end while this process attaches.
const MAX_ATTEMPTS: usize = 3;
/// Maximum time for the start of a gateway, by this process or another.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// File with the messages of a gateway in the background.
const LOG_FILE: &str = "serve.log";

/// A connection to the gateway, on which MCP is spoken.
pub struct AttachedClient {
    pub stream: BufReader<UnixStream>,
    /// Process of the gateway.
    pub pid: u32,
}

/// Attaches to the running gateway, starting one if necessary.
///
/// # Errors
///
/// Returns the reason to serve without a gateway.
pub async fn attach(session: &CommandSession, request: AttachRequest) -> Result<AttachedClient, String> {
    let place = GatewayPlace::new(session).ok_or("there is neither a runtime directory nor a state directory")?;
    let log = log_file(session);
    let request = GatewayRequest::Attach(Box::new(request));
    for _ in 0..MAX_ATTEMPTS {
        if let Some(connection) = place.request(request.clone()).await {
            return accept_reply(session, connection);
        }
        // Another process may be starting one. It has the lock then.
        let (lock, log) = (lock_start(&place).await?, log.clone());
        if let Some(connection) = place.request(request.clone()).await {
            return accept_reply(session, connection);
        }
        let starting = wharf_threads::run_blocking(move || start_gateway(log.as_deref()));
        let started = timeout(START_TIMEOUT, starting).await.map_err(|_| "the gateway did not start in time")?;
        started.and_then(|started| started).map_err(|error| format!("the gateway did not start: {error}"))?;
        let attached = place.request(request.clone()).await;
        drop(lock);
        if let Some(connection) = attached {
            return accept_reply(session, connection);
        }
    }
    Err("the gateway ended at once".to_owned())
}

fn accept_reply(session: &CommandSession, connection: GatewayConnection) -> Result<AttachedClient, String> {
    match connection.reply {
        GatewayReply::Attached { pid, warnings } => {
            warnings.into_iter().for_each(|warning| session.console.warn(UntrustedText::new(warning)));
            Ok(AttachedClient { stream: connection.stream, pid })
        }
        GatewayReply::Refused { reason } => Err(UntrustedText::new(reason).to_string()),
        GatewayReply::Done { .. } | GatewayReply::Offered { .. } => {
            Err("the gateway did not understand the request".to_owned())
        }
    }
}

/// Replaces the running gateway in the background by one of this version.
///
/// # Errors
///
/// Fails if none is running, or it cannot be replaced.
pub async fn upgrade(session: &CommandSession) -> Result<(), Failure> {
    let no_gateway = || Failure::new(FailureKind::Unreachable, "no gateway is running");
    let place = GatewayPlace::new(session).ok_or_else(no_gateway)?;
    let _starting = lock_start(&place).await.map_err(Failure::other)?;
    let replaced = match place.begin_takeover(None).await {
        TakeoverStart::NoGateway => return Err(no_gateway()),
        TakeoverStart::Refused(reason) => return Err(Failure::usage(UntrustedText::new(reason))),
        // The new gateway asks again.
        TakeoverStart::Offered(takeover) => takeover.pid,
    };
    let log = log_file(session);
    let started = wharf_threads::run_blocking(move || start_gateway(log.as_deref())).await;
    started.and_then(|started| started).map_err(Failure::other)?;
    session.console.say(format_args!("replaced the gateway (process {replaced})"));
    Ok(())
}

/// Takes the lock for starting or replacing a gateway.
///
/// # Errors
///
/// Returns the reason if another process keeps it.
pub async fn lock_start(place: &GatewayPlace) -> Result<LockFile, String> {
    let place = place.clone();
    let lock = wharf_threads::run_blocking(move || place.lock_start(START_TIMEOUT)).await;
    lock.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Returns the path of the log of a gateway in the background.
pub fn log_file(session: &CommandSession) -> Option<PathBuf> {
    session.configuration.state.as_deref().map(|state| state.join(LOG_FILE))
}

/// Starts a gateway in the background and waits until it listens. Blocks.
fn start_gateway(log: Option<&Path>) -> io::Result<()> {
    let mut command = background_command(BackgroundStep::Launch)?;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log_output(log)).spawn()?;
    let mut line = String::new();
    let read = match child.stdout.take() {
        Some(stdout) => io::BufReader::new(stdout).read_line(&mut line),
        None => Ok(0),
    };
    // The launching process ends at once.
    child.wait()?;
    read?;
    if line.trim_end() == READY_LINE {
        return Ok(());
    }
    let log = log.map(|log| format!("; see {}", log.display())).unwrap_or_default();
    Err(io::Error::other(format!("it ended before it was ready{log}")))
}

/// Starts the gateway itself, in a session of its own and as a child of no client, so that no client ends it with its own
/// processes. The output is that of this process.
///
/// # Errors
///
/// Fails if the process cannot be started.
pub fn launch_gateway() -> io::Result<()> {
    // A process that leads a group already has no need of it.
    let _ = rustix::process::setsid();
    background_command(BackgroundStep::Run)?.spawn().map(drop)
}

fn background_command(step: BackgroundStep) -> io::Result<Command> {
    // The running program, even if its file has been replaced since.
    let running = PathBuf::from("/proc/self/exe");
    let program = if running.exists() { running } else { std::env::current_exe()? };
    let mut command = Command::new(program);
    command.arg0("wharf").args(["serve", "--background", step.as_str()]).current_dir("/");
    Ok(command)
}

/// Opens the log of the gateway, which the gateway keeps short. Without one its messages are lost.
fn log_output(log: Option<&Path>) -> Stdio {
    let open = |path: &Path| -> io::Result<File> {
        path.parent().map(wharf_store::create_private_directory).transpose()?;
        OpenOptions::new().create(true).append(true).mode(0o600).open(path)
    };
    log.and_then(|path| open(path).ok()).map_or_else(Stdio::null, Stdio::from)
}
