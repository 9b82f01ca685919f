//! The host's side of a server's processes: starts them under a guard, passes orders on, and learns of the end.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, Interest};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::letter::{Errand, KILL, REPORT, Report, TERMINATE};
use super::reaped::Reaped;
use super::sweep::{self, ProcessMark};
use super::{Containment, Exit, GUARD_ARGUMENT, GUARD_NAME, GuardProgram, keeper, sys};

/// Larger pipes were slower under load, smaller ones stall on results of usual size.
const PIPE_SIZE: usize = 128 << 10;
/// How long a guard may take to say whether the server started.
const GUARD_ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// How often the host looks whether a guard was stopped. The kernel reports that to a parent that asks.
const GUARD_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// How long a guard may take to end beyond its server's grace; then the host kills it and sweeps by the mark.
const GUARD_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A running server as its host holds it. Dropping it ends the server.
pub struct Process {
    pub pid: i32,
    pub containment: Containment,
    orders: mpsc::UnboundedSender<u8>,
    exit: watch::Receiver<Option<Exit>>,
    /// Ends when the whole tree has ended.
    watcher: JoinHandle<()>,
}

/// Our ends of a server's streams, not blocking.
pub struct Streams {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// Why no server runs.
#[derive(Debug)]
pub enum LaunchError {
    /// The server's program did not start.
    Server(io::Error),
    /// Pipes, sockets or the guard could not be had.
    Around(io::Error),
}

/// Starts a server. The work that blocks is done off the runtime's threads.
///
/// Dropped while it waits, it ends whatever it has started.
pub async fn launch(errand: Errand, guard: GuardProgram) -> Result<(Process, Streams), LaunchError> {
    let grace = errand.grace;
    let started = tokio::task::spawn_blocking(move || match guard.path() {
        Some(program) => start_guarded(&errand, &program),
        None => start_grouped(&errand),
    });
    let (started, streams) = match started.await {
        Ok(started) => started?,
        Err(error) => return Err(LaunchError::Around(io::Error::other(error))),
    };
    Ok((started.watch(grace).map_err(LaunchError::Around)?, streams))
}

/// A server that has just been started and is not watched yet.
struct Started {
    pid: Pid,
    child: Reaped,
    /// The guard's socket; none for a mere group.
    control: Option<UnixStream>,
}

fn start_guarded(errand: &Errand, program: &Path) -> Result<(Started, Streams), LaunchError> {
    let around = LaunchError::Around;
    let (theirs, streams) = pipes().map_err(around)?;
    let (control, guards_end) = UnixStream::pair().map_err(around)?;
    let mut command = Command::new(program);
    command
        .arg0(GUARD_NAME)
        .arg(GUARD_ARGUMENT)
        .env_clear()
        .env(sweep::MARK, &errand.mark)
        .stdin(Stdio::from(OwnedFd::from(guards_end)))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mark = Some(ProcessMark::new(&errand.mark));
    let child = Reaped::new(command.spawn().map_err(around)?, mark).map_err(around)?;
    drop(command);
    match instruct(&control, errand, theirs) {
        Ok(pid) => Ok((Started { pid, child, control: Some(control) }, streams)),
        Err(error) => {
            drop(control);
            match error {
                // The guard has said so and ends at once: nothing runs under it.
                LaunchError::Server(_) => child.wait(),
                // A server that runs already may have stopped or killed its guard.
                LaunchError::Around(_) => child.end(),
            }
            Err(error)
        }
    }
}

/// Gives the guard its errand and waits to hear how the server's start went.
fn instruct(mut control: &UnixStream, errand: &Errand, theirs: [OwnedFd; 3]) -> Result<Pid, LaunchError> {
    let around = LaunchError::Around;
    hand_over(control, errand, &theirs).map_err(around)?;
    drop(theirs);
    control.set_read_timeout(Some(GUARD_ANSWERS_WITHIN)).map_err(around)?;
    let mut report = [0; REPORT];
    control.read_exact(&mut report).map_err(around)?;
    match Report::decode(report) {
        Some(Report::Started(pid)) => Pid::from_raw(pid).ok_or_else(|| around(io::ErrorKind::InvalidData.into())),
        Some(Report::Failed(errno)) => Err(LaunchError::Server(io::Error::from_raw_os_error(errno))),
        _ => Err(around(io::ErrorKind::InvalidData.into())),
    }
}

fn start_grouped(errand: &Errand) -> Result<(Started, Streams), LaunchError> {
    let (theirs, streams) = pipes().map_err(LaunchError::Around)?;
    let child = keeper::command(errand, theirs).spawn().map_err(LaunchError::Server)?;
    let pid = keeper::pid_of(&child).map_err(LaunchError::Around)?;
    let child = Reaped::new(child, None).map_err(LaunchError::Around)?;
    Ok((Started { pid, child, control: None }, streams))
}

/// The server's ends and ours.
fn pipes() -> io::Result<([OwnedFd; 3], Streams)> {
    let (their_stdin, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stdout, their_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr, their_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
    for pipe in [&stdin, &stdout] {
        // A user out of pipe memory gets the default size, which works too.
        let _ = fcntl_setpipe_size(pipe, PIPE_SIZE);
    }
    for ours in [&stdin, &stdout, &stderr] {
        rustix::io::ioctl_fionbio(ours, true)?;
    }
    Ok(([their_stdin, their_stdout, their_stderr], Streams { stdin, stdout, stderr }))
}

fn hand_over(mut control: &UnixStream, errand: &Errand, streams: &[OwnedFd; 3]) -> io::Result<()> {
    let letter = errand.encode();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    let descriptors = [streams[0].as_fd(), streams[1].as_fd(), streams[2].as_fd()];
    attached.push(SendAncillaryMessage::ScmRights(&descriptors));
    let sent = sendmsg(control, &[IoSlice::new(&letter)], &mut attached, SendFlags::NOSIGNAL)?;
    control.write_all(&letter[sent..])
}

impl Started {
    fn watch(self, grace: Duration) -> io::Result<Process> {
        let (orders, inbox) = mpsc::unbounded_channel();
        let (exit_sender, exit) = watch::channel(None);
        let pid = self.pid.as_raw_nonzero().get();
        let ended = match &self.child.watched {
            Some(watched) => Some(sys::watched(watched.try_clone()?, Interest::READABLE)?),
            None => None,
        };
        let (containment, watcher) = match self.control {
            Some(control) => {
                control.set_nonblocking(true)?;
                let control = tokio::net::UnixStream::from_std(control)?;
                let watcher = Guarded { control, child: self.child, ended, grace };
                (Containment::Guard, tokio::spawn(watcher.run(inbox, exit_sender)))
            }
            None => {
                let watcher = Grouped { group: self.pid, child: self.child, ended, grace };
                (Containment::Group, tokio::spawn(watcher.run(inbox, exit_sender)))
            }
        };
        Ok(Process { pid, containment, orders, exit, watcher })
    }
}

impl Process {
    /// SIGTERM to the server's group.
    pub fn terminate(&self) {
        let _ = self.orders.send(TERMINATE);
    }

    /// SIGKILL to everything.
    pub fn kill(&self) {
        let _ = self.orders.send(KILL);
    }

    /// What becomes of the server's own process: something once it has ended.
    pub fn exit(&self) -> watch::Receiver<Option<Exit>> {
        self.exit.clone()
    }

    /// Lets go of the server, which ends it, and waits until nothing of it is left.
    pub async fn gone(self) {
        drop(self.orders);
        let _ = self.watcher.await;
    }
}

/// Watches a guard. Dropped, it closes the socket, and the guard does the rest.
struct Guarded {
    control: tokio::net::UnixStream,
    child: Reaped,
    ended: Option<AsyncFd<OwnedFd>>,
    grace: Duration,
}

impl Guarded {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<u8>, exit: watch::Sender<Option<Exit>>) {
        let mut report = [0; REPORT];
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
                    deadline = self.pass_on(order);
                }
                _ = check.tick() => self.child.resume_if_stopped(),
                () = sleep_until(deadline) => {
                    tracing::warn!("a guard did not end in time: it is killed, and its server's processes with it");
                    self.child.signal(Signal::KILL);
                    break;
                }
            }
            if filled == REPORT {
                filled = 0;
                if let Some(Report::Ended(how)) = Report::decode(report) {
                    exit.send_replace(Some(how));
                }
            }
        }
        let guard = self.child.reap(self.ended.as_ref()).await;
        // A guard that was killed could not clean up. Its server died with it, by the parent-death signal; processes
        // that the server had started are found by their mark.
        if let Some(mark) = self.child.mark.take().filter(|_| !matches!(guard, Exit::Code(_))) {
            let _ = tokio::task::spawn_blocking(move || mark.kill_bearers()).await;
        }
        if exit.borrow().is_none() {
            exit.send_replace(Some(Exit::Unknown));
        }
    }

    /// Passes an order on, or closes the socket where no more will come; returns when the guard has to be gone then. A
    /// guard that its server has stopped hears neither before it continues.
    fn pass_on(&mut self, order: Option<u8>) -> Option<Instant> {
        let deadline = match order {
            Some(order) => {
                let _ = self.control.try_write(&[order]);
                None
            }
            None => {
                let _ = rustix::net::shutdown(&self.control, rustix::net::Shutdown::Write);
                Some(Instant::now() + self.grace + GUARD_ENDS_WITHIN)
            }
        };
        self.child.signal(Signal::CONT);
        deadline
    }
}

/// Sleeps until then; forever where there is no deadline.
async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Watches a server that has no guard. Dropped, it kills the group.
struct Grouped {
    group: Pid,
    child: Reaped,
    ended: Option<AsyncFd<OwnedFd>>,
    grace: Duration,
}

impl Grouped {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<u8>, exit: watch::Sender<Option<Exit>>) {
        let mut patience = None;
        loop {
            tokio::select! {
                how = self.child.reap(self.ended.as_ref()) => {
                    exit.send_replace(Some(how));
                    return;
                }
                order = inbox.recv(), if patience.is_none() => match order {
                    Some(KILL) => drop(kill_process_group(self.group, Signal::KILL)),
                    Some(_) => self.terminate(),
                    None => {
                        self.terminate();
                        patience = Some(Instant::now() + self.grace);
                    }
                },
                () = sleep_until(patience) => drop(kill_process_group(self.group, Signal::KILL)),
            }
        }
    }

    fn terminate(&self) {
        for signal in [Signal::TERM, Signal::CONT] {
            let _ = kill_process_group(self.group, signal);
        }
    }
}

impl Drop for Grouped {
    fn drop(&mut self) {
        // Also after the server's own end: what it left in its group ends with it.
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}
