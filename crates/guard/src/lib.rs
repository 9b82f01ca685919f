//! Owns the processes of one server, so that none of them outlives its use.
//!
//! A process group alone does not do it: a grandchild in a session of its own leaves the group, and nothing signals
//! a group when the host is killed. So each server runs under a **guard**: this very program, executed again under
//! another name, single-threaded, in its own session, and subreaper of whatever its server starts. It holds one end
//! of a socket pair; when the other end closes, for whatever reason, it ends everything below it. The server's pipes
//! go straight to the host, so a call gains no hop.
//!
//! Nothing here is set in the embedder's own process: no signal handler, no subreaper, no wait for any child but
//! the guard itself.

mod allocator;
mod keeper;
mod letter;
mod memory;
mod orphans;
mod reaped;
mod sweep;
mod sys;
mod warden;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

pub use allocator::return_large_memory;
pub use letter::Errand;
pub use memory::protect_memory;
pub use sys::watched;
pub use warden::{LaunchError, Process, Streams, launch};

/// The name a guard runs under.
const GUARD_NAME: &str = "wharf-guard";
/// Its only argument: without it, a program that happens to bear the name is left alone.
const GUARD_ARGUMENT: &str = "--control-on-stdin";

/// Set once [`run_if_asked`] has been called: only then can this program be executed again as a guard.
static GUARD_AVAILABLE: AtomicBool = AtomicBool::new(false);

/// Becomes a guard if that is what this process was started for, and returns otherwise.
///
/// Call it first in `main`, before threads and runtimes. A program that never does gets [`Containment::Group`].
pub fn run_if_asked() {
    let mut arguments = std::env::args_os();
    let name = arguments.next();
    let argument = arguments.next();
    if name.is_some_and(|name| name == GUARD_NAME) && argument.is_some_and(|argument| argument == GUARD_ARGUMENT) {
        keeper::run();
    }
    GUARD_AVAILABLE.store(true, Ordering::Relaxed);
}

/// Which program serves as guard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GuardProgram {
    /// This one, if it called [`run_if_asked`]; none otherwise.
    #[default]
    ThisProgram,
    /// Another one that calls [`run_if_asked`].
    At(PathBuf),
    /// None: the server is kept in a process group and nothing more.
    None,
}

impl GuardProgram {
    /// The path to execute.
    fn path(&self) -> Option<PathBuf> {
        match self {
            // The link also leads to the running program when its file has been replaced.
            Self::ThisProgram => GUARD_AVAILABLE.load(Ordering::Relaxed).then(|| PathBuf::from("/proc/self/exe")),
            Self::At(path) => Some(path.clone()),
            Self::None => None,
        }
    }
}

/// What holds a server's processes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// A guard: no descendant survives, whatever ends the host.
    Guard,
    /// A process group: descendants that leave the group, or a host that is killed, leave processes behind.
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

/// How a server's own process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody could tell: the guard itself was killed.
    Unknown,
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
            Self::Unknown => f.write_str("ended in a way nobody could observe"),
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
