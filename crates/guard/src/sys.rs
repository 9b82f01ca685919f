//! Unsafe code for processes: operations that neither the standard library nor rustix offers.
//!
//! Audited by hand. Each block states why it is sound. Keep it this small.

#![expect(
    unsafe_code,
    reason = "file descriptors, signal masks and the moment between fork and exec have no safe interface"
)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Closes every descriptor from 3 on. Only for a guard, before it has opened its own.
pub(super) fn close_inherited() {
    // SAFETY: the guard has just started and owns no descriptor above 2; none of its code can hold one of these.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// Ends this process without the program's exit handlers: it has not initialised what they clean up.
pub(super) fn exit_at_once(code: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Blocks every signal that would end or stop this process, and returns a signalfd for SIGCHLD.
///
/// Blocked, not ignored, because the mask is easily cleared for the server: [`reset_fds_and_signals`] does so.
pub(super) fn block_signals() -> io::Result<OwnedFd> {
    const BLOCKED: [libc::c_int; 11] = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGPIPE,
        libc::SIGALRM,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
    ];
    // SAFETY: both sets are initialised by sigemptyset before they are read, and live on this stack; signalfd returns a
    // new descriptor without another owner.
    unsafe {
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut blocked);
        for signal in BLOCKED {
            libc::sigaddset(&raw mut blocked, signal);
        }
        let mut children: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut children);
        libc::sigaddset(&raw mut children, libc::SIGCHLD);
        libc::sigaddset(&raw mut blocked, libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const blocked, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let descriptor = libc::signalfd(-1, &raw const children, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Makes the child start with only descriptors 0, 1 and 2 and with no signal blocked. The standard library would pass
/// on this process's mask.
pub(super) fn reset_fds_and_signals(command: &mut Command) {
    // SAFETY: the closure runs between fork and exec and makes only async-signal-safe calls, on its own set. It sets
    // close-on-exec instead of closing, so that the standard library's own error pipe works until exec.
    unsafe {
        command.pre_exec(|| {
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            Ok(())
        });
    }
}

/// Makes the child die with its parent, which must be single-threaded: the kernel watches the thread, not the process.
pub(super) fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: the closure makes two async-signal-safe system calls and touches only its own copy of a number.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // A parent that died before the line above never sends the signal.
            if libc::getppid() == parent { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
        });
    }
}

/// Registers a descriptor with the runtime's reactor. Must be called within a runtime.
pub fn register_fd(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd names the same open descriptor until it is dropped, which AsyncFd does after deregistering it.
    // It is never taken out, since all uses go through shared references.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, interest) }?)
}
