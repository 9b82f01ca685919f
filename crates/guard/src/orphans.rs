//! Children without a task that waits for them: guards whose watcher was dropped with its runtime.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;

use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::guard_main::pid_of;
use super::sweep::ProcessMark;

/// Takes a child that is about to end and removes it from the process table. A stopped guard is continued. If the guard
/// was killed, the processes with its mark are killed.
///
/// Without a runtime only a thread can wait. The thread lives as long as the guard's grace period. This is rare.
pub(super) fn reap_later(mut child: Child, mark: Option<ProcessMark>) {
    if matches!(child.try_wait(), Ok(None)) {
        // If the thread cannot be started, the entry stays until this process ends.
        let _ = wharf_threads::start_thread("wharf-reaper", move || reap_blocking(child, mark));
    }
}

fn reap_blocking(mut child: Child, mark: Option<ProcessMark>) {
    let seen = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    if let Ok(pid) = pid_of(&child) {
        while let Ok(Some(status)) = waitid(WaitId::Pid(pid), seen)
            && status.stopped()
        {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
    let is_killed = child.wait().is_ok_and(|status| status.signal().is_some());
    if let Some(mark) = mark.filter(|_| is_killed) {
        mark.kill_marked();
    }
}
