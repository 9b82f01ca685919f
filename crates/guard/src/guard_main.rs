//! The guard process: starts one server, waits, and leaves no process behind.
//!
//! Single-threaded and without a runtime, because the kernel's parent-death signal watches a thread.

use std::io::{self, IoSliceMut, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    Pid, Signal, WaitOptions, getpgid, kill_process, kill_process_group, set_parent_process_death_signal, wait,
};

use super::protocol::{GuardReport, KILL, StartRequest, TERMINATE};
use super::sweep::ProcessMark;
use super::{ProcessExit, memory, sweep, sys};

/// Runs the guard. The program's own `main` never runs in this process.
pub(super) fn run() -> ! {
    sys::close_inherited();
    // The guard holds its server's secrets. It works without this setting.
    let _ = memory::protect_memory();
    sys::exit_at_once(match GuardProcess::start_server() {
        Ok(keeper) => keeper.supervise(),
        Err(_) => 127,
    })
}

struct GuardProcess {
    control: UnixStream,
    /// Readable when a child has ended.
    children: OwnedFd,
    server: Pid,
    grace: Duration,
    exit: Option<ProcessExit>,
}

/// The reason the guard stopped waiting.
enum WakeReason {
    /// A child ended, or the timeout expired.
    Children,
    Order(u8),
    HostGone,
}

impl GuardProcess {
    fn start_server() -> io::Result<Self> {
        let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let _ = rustix::process::setsid();
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let children = sys::block_signals()?;
        // A server may stop its guard and kill the host. The death of the host then resumes the guard, which cleans up.
        let _ = set_parent_process_death_signal(Some(Signal::CONT));
        let (errand, streams) = receive_start_request(&control)?;
        ProcessMark::new(&errand.mark).apply();
        let server = match spawn_server(&errand, streams) {
            Ok(server) => server,
            Err(error) => {
                send_report(&control, GuardReport::Failed(error.raw_os_error().unwrap_or(0)));
                return Err(error);
            }
        };
        send_report(&control, GuardReport::Started(server.as_raw_nonzero().get()));
        Ok(Self { control, children, server, grace: errand.grace, exit: None })
    }

    /// Waits for the server's exit or an order from the host, then ends all processes. Returns the server's status.
    fn supervise(mut self) -> i32 {
        let gently = loop {
            if self.exit.is_some() {
                // Processes the server left running end with it.
                break true;
            }
            match self.wait(None) {
                WakeReason::Children => self.reap(),
                WakeReason::Order(TERMINATE) => drop(self.terminate()),
                WakeReason::Order(KILL) => break false,
                WakeReason::Order(_) => {}
                WakeReason::HostGone => break true,
            }
        };
        if gently {
            self.end_gently();
        }
        self.kill_all();
        match self.exit {
            Some(ProcessExit::Code(code)) => code,
            Some(ProcessExit::Signal(signal)) => 128 + signal,
            _ => 0,
        }
    }

    /// Sends SIGTERM to all processes and waits for the grace period, or until none is left or the host orders a kill.
    fn end_gently(&mut self) {
        let until = Instant::now() + self.grace;
        let mut told = self.terminate();
        loop {
            self.reap();
            let children = sweep::children_of(rustix::process::getpid());
            // A process adopted after its parent ended has not been signalled yet.
            let adopted = children.iter().filter(|child| !told.contains(child));
            for signal in [Signal::TERM, Signal::CONT] {
                self.signal_outside_group(adopted.clone().copied(), signal);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || children.is_empty() {
                return;
            }
            told = children;
            // The socket of a host that is gone stays readable: wait only for children and the timeout.
            if let WakeReason::Order(KILL) = self.wait(Some(left.min(Duration::from_millis(20)))) {
                return;
            }
        }
    }

    /// Sends SIGTERM to the server's group and to children outside it. Returns all children.
    fn terminate(&self) -> Vec<Pid> {
        let children = sweep::children_of(rustix::process::getpid());
        let _ = kill_process_group(self.server, Signal::TERM);
        self.signal_outside_group(children.iter().copied(), Signal::TERM);
        // A stopped process does not handle SIGTERM before it continues.
        let _ = kill_process_group(self.server, Signal::CONT);
        self.signal_outside_group(children.iter().copied(), Signal::CONT);
        children
    }

    /// Signals the children outside the server's group. The others would get the signal twice, and some programs treat
    /// a second SIGTERM as a request to quit at once.
    fn signal_outside_group(&self, children: impl Iterator<Item = Pid>, signal: Signal) {
        for child in children.filter(|&child| getpgid(Some(child)) != Ok(self.server)) {
            let _ = kill_process(child, signal);
        }
    }

    /// Kills children until there are none: the children of a dead process become children of the guard.
    fn kill_all(&mut self) {
        let _ = kill_process_group(self.server, Signal::KILL);
        loop {
            for child in sweep::children_of(rustix::process::getpid()) {
                let _ = kill_process(child, Signal::KILL);
            }
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) => self.record_exit(pid, status),
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            self.record_exit(pid, status);
        }
    }

    fn record_exit(&mut self, pid: Pid, status: rustix::process::WaitStatus) {
        if pid != self.server || self.exit.is_some() {
            return;
        }
        let exit = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ProcessExit::Code(code),
            (None, Some(signal)) => ProcessExit::Signal(signal),
            (None, None) => ProcessExit::Unknown,
        };
        self.exit = Some(exit);
        send_report(&self.control, GuardReport::Ended(exit));
    }

    fn wait(&mut self, at_most: Option<Duration>) -> WakeReason {
        let timeout = at_most.map(|time| Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() });
        let host_gone_already = at_most.is_some();
        let mut descriptors = [PollFd::new(&self.children, PollFlags::IN), PollFd::new(&self.control, PollFlags::IN)];
        let watched = if host_gone_already { &mut descriptors[..1] } else { &mut descriptors[..] };
        let _ = poll(watched, timeout.as_ref());
        let children = !descriptors[0].revents().is_empty();
        let spoken = !descriptors[1].revents().is_empty();
        if children {
            let mut information = [0; 1024];
            let _ = rustix::io::read(&self.children, &mut information);
        }
        if host_gone_already {
            return self.try_read_order().map_or(WakeReason::Children, WakeReason::Order);
        }
        if !spoken {
            return WakeReason::Children;
        }
        let mut order = [0];
        match self.control.read(&mut order) {
            Ok(1) => WakeReason::Order(order[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => WakeReason::Children,
            _ => WakeReason::HostGone,
        }
    }

    fn try_read_order(&self) -> Option<u8> {
        let mut order = [0];
        match rustix::net::recv(&self.control, &mut order[..], RecvFlags::DONTWAIT) {
            Ok((1, _)) => Some(order[0]),
            _ => None,
        }
    }
}

fn send_report(control: &UnixStream, report: GuardReport) {
    // The host may be gone. SIGPIPE is blocked, so that is only an error, which is ignored.
    let _ = io::Write::write_all(&mut &*control, &report.encode());
}

/// Reads the start request and the three streams attached to it.
fn receive_start_request(control: &UnixStream) -> io::Result<(StartRequest, [OwnedFd; 3])> {
    let mut length = [0; 4];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(control, &mut [IoSliceMut::new(&mut length)], &mut attached, RecvFlags::CMSG_CLOEXEC)?.bytes;
    let mut streams = Vec::new();
    for message in attached.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            streams.extend(descriptors);
        }
    }
    (&*control).read_exact(&mut length[received..])?;
    let errand = StartRequest::read(length, control)?;
    let streams = streams.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok((errand, streams))
}

fn spawn_server(errand: &StartRequest, streams: [OwnedFd; 3]) -> io::Result<Pid> {
    let mut command = server_command(errand, streams);
    sys::die_with_parent(&mut command);
    let child = command.spawn()?;
    pid_of(&child)
}

/// Returns the process id of a child that has not been waited for.
pub(super) fn pid_of(child: &std::process::Child) -> io::Result<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Creates the command that runs a server: its own process group, only its own environment, three descriptors.
pub(super) fn server_command(errand: &StartRequest, [stdin, stdout, stderr]: [OwnedFd; 3]) -> Command {
    let mut command = Command::new(&errand.program);
    command
        .args(&errand.args)
        .env_clear()
        .envs(errand.env.iter().map(|(name, value)| (name, value)))
        .env(sweep::MARK_VARIABLE, &errand.mark)
        .current_dir(&errand.cwd)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr))
        .process_group(0);
    sys::reset_fds_and_signals(&mut command);
    command
}
