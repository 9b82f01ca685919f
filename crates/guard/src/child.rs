//! A child process of the host, from its start until it has been reaped.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, waitid};
use tokio::io::unix::AsyncFd;

use super::sweep::ProcessMark;
use super::{ProcessExit, guard_main, orphans};

/// A child process that is awaited by its pidfd, or reaped later if dropped.
pub(super) struct ChildProcess {
    child: Option<Child>,
    /// Readable once the child has ended. `None` if the kernel does not support pidfds.
    pub watched: Option<OwnedFd>,
    /// The mark of the server's processes, if the child is a guard.
    pub mark: Option<ProcessMark>,
}

impl ChildProcess {
    pub fn new(mut child: Child, mark: Option<ProcessMark>) -> io::Result<Self> {
        match guard_main::pid_of(&child).map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            Ok(Ok(watched)) => Ok(Self { child: Some(child), watched: Some(watched), mark }),
            Ok(Err(rustix::io::Errno::NOSYS)) => Ok(Self { child: Some(child), watched: None, mark }),
            Ok(Err(error)) => {
                let _ = child.kill();
                orphans::reap_later(child, mark);
                Err(error.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the process id, which stays valid until the child has been reaped.
    fn pid(&self) -> Option<Pid> {
        self.child.as_ref().and_then(|child| guard_main::pid_of(child).ok())
    }

    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, signal);
        }
    }

    /// Continues a stopped child. A guard never stops by itself, so its server stopped it.
    pub fn resume_if_stopped(&self) {
        let Some(pid) = self.pid() else { return };
        if let Ok(Some(_)) = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG) {
            tracing::warn!("a guard was stopped, continuing it");
            self.signal(Signal::CONT);
        }
    }

    /// Kills the child and every process with its mark. Blocks.
    pub fn kill_tree(mut self) {
        self.signal(Signal::KILL);
        let mark = self.mark.take();
        self.wait();
        if let Some(mark) = mark {
            mark.kill_marked();
        }
    }

    /// Waits for a child that is about to end. Blocks.
    pub fn wait(mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }

    /// Waits for the child to end. Cancel-safe.
    pub async fn reap(&mut self, ended: Option<&AsyncFd<OwnedFd>>) -> ProcessExit {
        while let Some(child) = &mut self.child {
            match child.try_wait() {
                Ok(None) => match ended {
                    Some(ended) => match ended.readable().await {
                        Ok(mut guard) => guard.clear_ready(),
                        Err(_) => break,
                    },
                    // Only old kernels: poll.
                    None => tokio::time::sleep(Duration::from_millis(20)).await,
                },
                Ok(Some(status)) => {
                    self.child = None;
                    return exit_from_status(status);
                }
                Err(_) => break,
            }
        }
        ProcessExit::Unknown
    }
}

fn exit_from_status(status: std::process::ExitStatus) -> ProcessExit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => ProcessExit::Code(code),
        (None, Some(signal)) => ProcessExit::Signal(signal),
        (None, None) => ProcessExit::Unknown,
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            orphans::reap_later(child, self.mark.take());
        }
    }
}
