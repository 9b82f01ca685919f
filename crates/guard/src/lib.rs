//! Owns the processes of one server, so that none of them outlives the server.
//!
//! A process group is not enough: a grandchild in its own session leaves the group, and a group gets no signal when the
//! host is killed. So each server runs under a **guard**: this program, executed again under another name,
//! single-threaded, in its own session, and subreaper of all processes its server starts. It holds one end of a socket
//! pair. When the other end closes, for any reason, it ends all processes below it. The server's pipes go straight to
//! the host, so calls have no extra hop.
//!
//! A program needs no call for this: a process that is started as a guard becomes one before `main`, so any `main` works,
//! also that of a test harness.
//!
//! Nothing is set in the embedder's own process: no signal handler, no subreaper, and no wait for any child but the
//! guard itself.

#![warn(missing_docs)]

mod allocator;
mod child;
mod guard_main;
mod launcher;
mod memory;
mod orphans;
mod protocol;
mod startup;
mod sweep;
mod sys;

use std::io;
use std::path::PathBuf;

pub use allocator::return_large_memory;
pub use launcher::{LaunchError, LaunchedServer, ServerStreams, launch};
pub use memory::protect_memory;
pub use protocol::StartRequest;
pub use sys::register_fd;

/// The program that serves as guard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GuardProgram {
    /// This program. If it cannot be executed again as a guard, because it has loaded this crate from a shared library,
    /// the start of a server fails.
    #[default]
    ThisProgram,
    /// Another program that contains this crate, such as `wharf`.
    At(PathBuf),
    /// No guard: the server only gets its own process group.
    None,
}

impl GuardProgram {
    /// Returns the path to execute, if there is to be a guard.
    fn path(&self) -> io::Result<Option<PathBuf>> {
        match self {
            Self::ThisProgram => startup::own_program().map(Some),
            Self::At(path) => Ok(Some(path.clone())),
            Self::None => Ok(None),
        }
    }
}

/// The containment of a server's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// A guard: no descendant survives, however the host ends.
    Guard,
    /// A process group: descendants that leave the group survive, and so do all processes if the host is killed.
    Group,
}

impl std::fmt::Display for Containment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Guard => "guard",
            Self::Group => "group",
        })
    }
}

/// The exit status of a server's own process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessExit {
    /// Exited with this code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// Unknown: the guard itself was killed.
    Unknown,
}

impl std::fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
            Self::Unknown => f.write_str("ended with unknown status"),
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return None,
    })
}
