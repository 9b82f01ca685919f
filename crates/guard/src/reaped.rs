//! One child process of the host, from its start until it has been waited for.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, waitid};
use tokio::io::unix::AsyncFd;

use super::sweep::ProcessMark;
use super::{Exit, keeper, orphans};

/// A child process that is waited for by its own descriptor, or left to be collected later.
pub(super) struct Reaped {
    child: Option<Child>,
    /// Readable once the child has ended; none where the kernel has no such descriptors.
    pub watched: Option<OwnedFd>,
    /// A guard's: the mark of its server's processes.
    pub mark: Option<ProcessMark>,
}

impl Reaped {
    pub fn new(mut child: Child, mark: Option<ProcessMark>) -> io::Result<Self> {
        match keeper::pid_of(&child).map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            Ok(Ok(watched)) => Ok(Self { child: Some(child), watched: Some(watched), mark }),
            Ok(Err(rustix::io::Errno::NOSYS)) => Ok(Self { child: Some(child), watched: None, mark }),
            Ok(Err(error)) => {
                let _ = child.kill();
                orphans::leave(child, mark);
                Err(error.into())
            }
            Err(error) => Err(error),
        }
    }

    /// The child's process id, which is its own until it has been waited for.
    fn pid(&self) -> Option<Pid> {
        self.child.as_ref().and_then(|child| keeper::pid_of(child).ok())
    }

    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, signal);
        }
    }

    /// Continues a child that was stopped. A guard stops by nothing of its own, so its server did that.
    pub fn resume_if_stopped(&self) {
        let Some(pid) = self.pid() else { return };
        if let Ok(Some(_)) = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG) {
            tracing::warn!("a guard was stopped: it is continued");
            self.signal(Signal::CONT);
        }
    }

    /// Kills the child and every process that bears its mark, blocking.
    pub fn end(mut self) {
        self.signal(Signal::KILL);
        let mark = self.mark.take();
        self.wait();
        if let Some(mark) = mark {
            mark.kill_bearers();
        }
    }

    /// Waits for a child that is about to end, blocking.
    pub fn wait(mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }

    /// Waits for the child's end. Dropped while it waits, it can be called again.
    pub async fn reap(&mut self, ended: Option<&AsyncFd<OwnedFd>>) -> Exit {
        while let Some(child) = &mut self.child {
            match child.try_wait() {
                Ok(None) => match ended {
                    Some(ended) => match ended.readable().await {
                        Ok(mut guard) => guard.clear_ready(),
                        Err(_) => break,
                    },
                    // Rare and old: look again now and then.
                    None => tokio::time::sleep(Duration::from_millis(20)).await,
                },
                Ok(Some(status)) => {
                    self.child = None;
                    return how_it_ended(status);
                }
                Err(_) => break,
            }
        }
        Exit::Unknown
    }
}

fn how_it_ended(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            orphans::leave(child, self.mark.take());
        }
    }
}
