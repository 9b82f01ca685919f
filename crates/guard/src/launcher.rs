//! The host's side of a server's processes: starts them under a guard, forwards orders, and reports the exit.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, Interest};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::child::ChildProcess;
use super::protocol::{GuardReport, KILL, REPORT_BYTES, StartRequest, TERMINATE};
use super::startup::{GUARD_ARGUMENT, GUARD_NAME};
use super::sweep::{self, ProcessMark};
use super::{Containment, GuardProgram, ProcessExit, guard_main, sys};

/// The variable with the loader's search path.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
/// Size of a pipe. Larger pipes were slower under load; smaller ones stall on results of usual size.
const PIPE_SIZE: usize = 128 << 10;
/// Timeout for a guard to report whether the server started.
const GUARD_START_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval for checking whether a guard was stopped. The kernel reports this only to a parent that asks.
const GUARD_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Time for a guard to end beyond its server's grace period. After that the host kills it and the marked processes.
const GUARD_EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// A running server. Dropping it ends the server.
pub struct LaunchedServer {
    /// Process ID of the server.
    pub pid: i32,
    /// Containment of the server's processes.
    pub containment: Containment,
    orders: mpsc::UnboundedSender<u8>,
    exit: watch::Receiver<Option<ProcessExit>>,
    /// Finishes when the whole process tree has ended.
    watcher: JoinHandle<()>,
}

/// The host's ends of a server's streams, non-blocking.
pub struct ServerStreams {
    /// Writing end of the server's stdin.
    pub stdin: OwnedFd,
    /// Reading end of the server's stdout.
    pub stdout: OwnedFd,
    /// Reading end of the server's stderr.
    pub stderr: OwnedFd,
}

/// The reason a server could not be started.
#[derive(Debug)]
pub enum LaunchError {
    /// The server's program did not start.
    Server(io::Error),
    /// Pipes, sockets or the guard could not be created.
    Around(io::Error),
}

/// Starts a server. Blocking work runs off the runtime's threads.
///
/// # Cancel safety
///
/// Dropping the future ends the processes it has started.
pub async fn launch(errand: StartRequest, guard: GuardProgram) -> Result<(LaunchedServer, ServerStreams), LaunchError> {
    let grace = errand.grace;
    let started = wharf_threads::run_blocking(move || match guard.path().map_err(LaunchError::Around)? {
        Some(program) => start_guarded(&errand, &program),
        None => start_grouped(&errand),
    });
    let (started, streams) = match started.await {
        Ok(started) => started?,
        Err(error) => return Err(LaunchError::Around(error)),
    };
    Ok((started.spawn_watcher(grace).map_err(LaunchError::Around)?, streams))
}

/// A server that has just been started and has no watcher yet.
struct UnwatchedServer {
    pid: Pid,
    child: ChildProcess,
    /// The guard's socket. `None` for a plain process group.
    control: Option<UnixStream>,
}

fn start_guarded(errand: &StartRequest, program: &Path) -> Result<(UnwatchedServer, ServerStreams), LaunchError> {
    let around = LaunchError::Around;
    let (theirs, streams) = create_pipes().map_err(around)?;
    let (control, guards_end) = UnixStream::pair().map_err(around)?;
    let mut command = Command::new(program);
    command
        .arg0(GUARD_NAME)
        .arg(GUARD_ARGUMENT)
        .env_clear()
        .env(sweep::MARK_VARIABLE, &errand.mark)
        .stdin(Stdio::from(OwnedFd::from(guards_end)))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    keep_library_path(&mut command);
    let mark = Some(ProcessMark::new(&errand.mark));
    let guard = command.spawn().map_err(around)?;
    let child = ChildProcess::new(guard, mark).map_err(around)?;
    drop(command);
    match send_start_request(&control, errand, theirs) {
        Ok(pid) => Ok((UnwatchedServer { pid, child, control: Some(control) }, streams)),
        Err(error) => {
            drop(control);
            match error {
                // The guard has reported the failure and ends at once; it has no children.
                LaunchError::Server(_) => {
                    child.wait();
                    Err(error)
                }
                // A server that already runs may have stopped or killed its guard.
                LaunchError::Around(error) => {
                    child.kill_tree();
                    Err(around(describe_handshake_error(program, error)))
                }
            }
        }
    }
}

/// Passes on the only variable that the program may need to be loaded.
#[expect(clippy::disallowed_methods, reason = "not an input: the same program is executed again, by the same loader")]
fn keep_library_path(command: &mut Command) {
    if let Some(path) = std::env::var_os(LIBRARY_PATH) {
        command.env(LIBRARY_PATH, path);
    }
}

/// Names the guard and the next step in errors of the socket. Other errors stay as they are: some can be retried.
fn describe_handshake_error(program: &Path, error: io::Error) -> io::Error {
    let program = program.display();
    let text = match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            format!(
                "the guard `{program}` ended before it started the server; a guard must be a program that links Wharf"
            )
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("the guard `{program}` did not respond within {} s", GUARD_START_TIMEOUT.as_secs())
        }
        _ => return error,
    };
    io::Error::new(error.kind(), text)
}

/// Sends the start request to the guard and waits for the outcome.
fn send_start_request(
    mut control: &UnixStream,
    errand: &StartRequest,
    theirs: [OwnedFd; 3],
) -> Result<Pid, LaunchError> {
    let around = LaunchError::Around;
    send_with_streams(control, errand, &theirs).map_err(around)?;
    drop(theirs);
    control.set_read_timeout(Some(GUARD_START_TIMEOUT)).map_err(around)?;
    let mut report = [0; REPORT_BYTES];
    control.read_exact(&mut report).map_err(around)?;
    match GuardReport::decode(report) {
        Some(GuardReport::Started(pid)) => Pid::from_raw(pid).ok_or_else(|| around(io::ErrorKind::InvalidData.into())),
        Some(GuardReport::Failed(errno)) => Err(LaunchError::Server(io::Error::from_raw_os_error(errno))),
        _ => Err(around(io::ErrorKind::InvalidData.into())),
    }
}

fn start_grouped(errand: &StartRequest) -> Result<(UnwatchedServer, ServerStreams), LaunchError> {
    let (theirs, streams) = create_pipes().map_err(LaunchError::Around)?;
    let child = guard_main::server_command(errand, theirs).spawn().map_err(LaunchError::Server)?;
    let pid = guard_main::pid_of(&child).map_err(LaunchError::Around)?;
    let child = ChildProcess::new(child, None).map_err(LaunchError::Around)?;
    Ok((UnwatchedServer { pid, child, control: None }, streams))
}

/// Creates the pipes: the server's ends and the host's ends.
fn create_pipes() -> io::Result<([OwnedFd; 3], ServerStreams)> {
    let (their_stdin, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stdout, their_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr, their_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
    for pipe in [&stdin, &stdout] {
        // The default size also works, if the pipe memory of this user is exhausted.
        let _ = fcntl_setpipe_size(pipe, PIPE_SIZE);
    }
    for ours in [&stdin, &stdout, &stderr] {
        rustix::io::ioctl_fionbio(ours, true)?;
    }
    Ok(([their_stdin, their_stdout, their_stderr], ServerStreams { stdin, stdout, stderr }))
}

fn send_with_streams(mut control: &UnixStream, errand: &StartRequest, streams: &[OwnedFd; 3]) -> io::Result<()> {
    let letter = errand.encode();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    let descriptors = [streams[0].as_fd(), streams[1].as_fd(), streams[2].as_fd()];
    attached.push(SendAncillaryMessage::ScmRights(&descriptors));
    let sent = sendmsg(control, &[IoSlice::new(&letter)], &mut attached, SendFlags::NOSIGNAL)?;
    control.write_all(&letter[sent..])
}

impl UnwatchedServer {
    fn spawn_watcher(self, grace: Duration) -> io::Result<LaunchedServer> {
        let (orders, inbox) = mpsc::unbounded_channel();
        let (exit_sender, exit) = watch::channel(None);
        let pid = self.pid.as_raw_nonzero().get();
        let ended = match &self.child.watched {
            Some(watched) => Some(sys::register_fd(watched.try_clone()?, Interest::READABLE)?),
            None => None,
        };
        let (containment, watcher) = match self.control {
            Some(control) => {
                control.set_nonblocking(true)?;
                let control = tokio::net::UnixStream::from_std(control)?;
                let watcher = GuardWatcher { control, child: self.child, ended, grace };
                (Containment::Guard, tokio::spawn(watcher.run(inbox, exit_sender)))
            }
            None => {
                let watcher = GroupWatcher { group: self.pid, child: self.child, ended, grace };
                (Containment::Group, tokio::spawn(watcher.run(inbox, exit_sender)))
            }
        };
        Ok(LaunchedServer { pid, containment, orders, exit, watcher })
    }
}

impl LaunchedServer {
    /// Sends SIGTERM to the server's group.
    pub fn terminate(&self) {
        let _ = self.orders.send(TERMINATE);
    }

    /// Sends SIGKILL to all processes.
    pub fn kill(&self) {
        let _ = self.orders.send(KILL);
    }

    /// Returns the exit status of the server's own process, set once it has ended.
    pub fn exit(&self) -> watch::Receiver<Option<ProcessExit>> {
        self.exit.clone()
    }

    /// Ends the server and waits until all of its processes have ended.
    pub async fn wait_until_gone(self) {
        drop(self.orders);
        let _ = self.watcher.await;
    }
}

/// Watches a guard. Dropping it closes the socket, and the guard ends the server.
struct GuardWatcher {
    control: tokio::net::UnixStream,
    child: ChildProcess,
    ended: Option<AsyncFd<OwnedFd>>,
    grace: Duration,
}

impl GuardWatcher {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<u8>, exit: watch::Sender<Option<ProcessExit>>) {
        let mut report = [0; REPORT_BYTES];
        let mut filled = 0;
        let mut deadline = None;
        let mut check = tokio::time::interval(GUARD_CHECK_INTERVAL);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                read = self.control.read(&mut report[filled..]) => match read {
                    Ok(0) | Err(_) => break,
                    Ok(count) => filled += count,
                },
                order = inbox.recv(), if deadline.is_none() => {
                    deadline = self.forward_order(order);
                }
                _ = check.tick() => self.child.resume_if_stopped(),
                () = sleep_until(deadline) => {
                    tracing::warn!("a guard did not end in time, killing it and its server's processes");
                    self.child.signal(Signal::KILL);
                    break;
                }
            }
            if filled == REPORT_BYTES {
                filled = 0;
                if let Some(GuardReport::Ended(how)) = GuardReport::decode(report) {
                    exit.send_replace(Some(how));
                }
            }
        }
        let guard = self.child.reap(self.ended.as_ref()).await;
        // A guard that was killed could not clean up. Its server died with it, by the parent-death signal. Processes
        // that the server had started are found by their mark.
        if let Some(mark) = self.child.mark.take().filter(|_| !matches!(guard, ProcessExit::Code(_))) {
            let _ = wharf_threads::run_blocking(move || mark.kill_marked()).await;
        }
        if exit.borrow().is_none() {
            exit.send_replace(Some(ProcessExit::Unknown));
        }
    }

    /// Forwards an order, or closes the socket if there will be no more orders; then returns the deadline for the guard
    /// to end. SIGCONT follows in both cases, because the server may have stopped its guard.
    fn forward_order(&mut self, order: Option<u8>) -> Option<Instant> {
        let deadline = match order {
            Some(order) => {
                // Not through the runtime, which rejects a write before it has seen the socket ready once.
                let _ = send(&self.control, &[order], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
                None
            }
            None => {
                let _ = rustix::net::shutdown(&self.control, rustix::net::Shutdown::Write);
                Some(Instant::now() + self.grace + GUARD_EXIT_TIMEOUT)
            }
        };
        self.child.signal(Signal::CONT);
        deadline
    }
}

/// Sleeps until the deadline, or forever if there is none.
async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Watches a server without a guard. Dropping it kills the group.
struct GroupWatcher {
    group: Pid,
    child: ChildProcess,
    ended: Option<AsyncFd<OwnedFd>>,
    grace: Duration,
}

impl GroupWatcher {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<u8>, exit: watch::Sender<Option<ProcessExit>>) {
        let mut max_wait = None;
        loop {
            tokio::select! {
                how = self.child.reap(self.ended.as_ref()) => {
                    exit.send_replace(Some(how));
                    return;
                }
                order = inbox.recv(), if max_wait.is_none() => match order {
                    Some(KILL) => drop(kill_process_group(self.group, Signal::KILL)),
                    Some(_) => self.terminate(),
                    None => {
                        self.terminate();
                        max_wait = Some(Instant::now() + self.grace);
                    }
                },
                () = sleep_until(max_wait) => drop(kill_process_group(self.group, Signal::KILL)),
            }
        }
    }

    fn terminate(&self) {
        for signal in [Signal::TERM, Signal::CONT] {
            let _ = kill_process_group(self.group, signal);
        }
    }
}

impl Drop for GroupWatcher {
    fn drop(&mut self) {
        // Also after the server's own exit: processes left in its group end with it.
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}
