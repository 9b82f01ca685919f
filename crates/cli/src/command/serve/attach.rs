//! Attaches a client on stdin and stdout to the gateway that runs for this user, and starts one if none runs.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, Cursor};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader, copy, copy_buf};
use tokio::net::UnixStream;
use tokio::time::timeout;
use wharf_spec::UntrustedText;
use wharf_terminal::failure::{Failure, FailureKind};
use wharf_terminal::gateway_socket::{AttachRequest, GatewayConnection, GatewayPlace, GatewayReply, GatewayRequest};
use wharf_terminal::protocol_pipes;
use wharf_terminal::session::CommandSession;

use super::BackgroundStep;
use super::gateway_process::READY_LINE;

/// Maximum number of gateways that end while this process attaches.
const MAX_ATTEMPTS: usize = 3;
/// Maximum time for the start of a gateway, by this process or another.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum time for the last messages of a gateway after the client has ended its input.
const LAST_MESSAGES_TIMEOUT: Duration = Duration::from_secs(5);
/// File with the messages of a gateway in the background.
const LOG_FILE: &str = "serve.log";

/// A connection to the gateway, on which MCP is spoken.
pub struct AttachedClient {
    stream: BufReader<UnixStream>,
    pid: u32,
}

/// Attaches to the running gateway, starting one if necessary.
///
/// # Errors
///
/// Returns the reason to serve without a gateway.
pub async fn attach(session: &CommandSession, request: AttachRequest) -> Result<AttachedClient, String> {
    let place = GatewayPlace::new(session).ok_or("there is neither a runtime directory nor a state directory")?;
    let log = session.configuration.state.as_deref().map(|state| state.join(LOG_FILE));
    let request = GatewayRequest::Attach(Box::new(request));
    for _ in 0..MAX_ATTEMPTS {
        if let Some(connection) = place.request(request.clone()).await {
            return accept_reply(session, connection);
        }
        // Another process may be starting one. It has the lock then.
        let (locking, log) = (place.clone(), log.clone());
        let lock = wharf_threads::run_blocking(move || locking.lock_start(START_TIMEOUT)).await;
        let lock = lock.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
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
            for warning in warnings {
                session.console.warn(UntrustedText::new(warning));
            }
            Ok(AttachedClient { stream: connection.stream, pid })
        }
        GatewayReply::Refused { reason } => Err(UntrustedText::new(reason).to_string()),
        GatewayReply::Done { .. } => Err("the gateway did not understand the request".to_owned()),
    }
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

/// Opens the log of the gateway anew. Without one its messages are lost.
fn log_output(log: Option<&Path>) -> Stdio {
    let open = |path: &Path| -> io::Result<File> {
        path.parent().map(wharf_store::create_private_directory).transpose()?;
        OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)
    };
    log.and_then(|path| open(path).ok()).map_or_else(Stdio::null, Stdio::from)
}

impl AttachedClient {
    /// Relays messages in both directions until the client ends its input.
    ///
    /// # Errors
    ///
    /// Fails if the gateway ends before the client, or a pipe fails.
    pub async fn relay(self) -> Result<(), Failure> {
        let mut input = protocol_pipes::input().map_err(Failure::other)?;
        let (mut output, written) = protocol_pipes::output().map_err(Failure::other)?;
        let early = Cursor::new(self.stream.buffer().to_vec());
        let (read, mut write) = self.stream.into_inner().into_split();
        let sending = async {
            if copy_buf(&mut input, &mut write).await.is_err() {
                // The gateway reads no more. What it still writes tells the end.
                std::future::pending::<()>().await;
            }
            // The gateway answers what it can still answer, and closes the connection.
            let _ = write.shutdown().await;
        };
        let receiving = async {
            let _ = copy(&mut early.chain(read), &mut output).await;
            drop(output);
        };
        let (mut receiving, mut written) = (pin!(receiving), pin!(written));
        let ended = tokio::select! {
            biased;
            () = sending => RelayEnd::Client,
            () = &mut receiving => RelayEnd::Gateway,
            _ = &mut written => RelayEnd::Output,
        };
        match ended {
            RelayEnd::Client => {
                let _ = timeout(LAST_MESSAGES_TIMEOUT, async { tokio::join!(receiving, written) }).await;
                Ok(())
            }
            RelayEnd::Output => Ok(()),
            RelayEnd::Gateway => {
                let _ = timeout(LAST_MESSAGES_TIMEOUT, written).await;
                let message =
                    format!("the gateway (process {}) has ended; calls in progress may have executed", self.pid);
                Err(Failure::new(FailureKind::Unreachable, message)
                    .with_hint("connect again: the next `wharf serve` starts a new gateway"))
            }
        }
    }
}

/// The side that ended a relay.
enum RelayEnd {
    Client,
    /// The gateway closed the connection.
    Gateway,
    /// The client no longer reads.
    Output,
}
