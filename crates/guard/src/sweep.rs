//! Finds processes in `/proc`: the children of a guard, and processes with a server's mark.
//!
//! The mark is inherited in two ways. One is an environment variable, which a process can clear. The other is the hard
//! limit of `RLIMIT_LOCKS`, which the kernel stores and shows but has not enforced since Linux 2.4. It survives fork,
//! exec, `setsid` and an empty environment, and no unprivileged process can raise it. A process that lowers it on
//! purpose, or that another service (cron, systemd) starts on its behalf, has no mark.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};
use sha2::{Digest as _, Sha256};

/// The environment variable that marks every process of one server.
pub(super) const MARK_VARIABLE: &str = "WHARF_SERVER";

/// The line of `/proc/<pid>/limits` that shows `RLIMIT_LOCKS`.
const LIMIT_LINE: &str = "Max file locks";
/// Upper bound of marks. A lower limit of this process takes precedence.
const MAX_MARK: u64 = 1 << 62;
/// Below this limit a mark would not be unique.
const MIN_UNIQUE_LIMIT: u64 = 1 << 32;
/// Maximum time to kill processes that fork during the search.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(2);

/// The mark of one server's processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessMark {
    /// The variable and its value.
    variable: Vec<u8>,
    /// The hard limit. `None` if this process's own limit is too low.
    limit: Option<u64>,
}

impl ProcessMark {
    /// Derives the mark from its text. Host and guard derive the same mark, because a guard inherits its host's limits.
    pub fn new(text: &str) -> Self {
        let ceiling = getrlimit(Resource::Locks).maximum.map_or(MAX_MARK, |own| own.min(MAX_MARK));
        let random = Sha256::digest(text).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        // In the upper half, so that a host that is itself a server has room below for its own servers.
        let limit = (ceiling >= MIN_UNIQUE_LIMIT).then(|| ceiling / 2 + random % (ceiling / 2));
        Self { variable: format!("{MARK_VARIABLE}={text}").into_bytes(), limit }
    }

    /// Sets the limit for this process and its descendants. Only for a guard.
    pub fn apply(&self) {
        if self.limit.is_some() {
            // If this is refused, the variable alone is the mark.
            let _ = setrlimit(Resource::Locks, Rlimit { current: self.limit, maximum: self.limit });
        }
    }

    /// Kills every process with the mark. Blocks. For the rare case that a guard could not clean up.
    ///
    /// Searches again until none is left, because a process that is just forking may be missed.
    pub fn kill_marked(&self) {
        let until = Instant::now() + SWEEP_TIMEOUT;
        loop {
            let bearers = processes().filter(|&process| process != getpid() && self.marks(process));
            let killed = bearers.filter(|&process| kill_process(process, Signal::KILL).is_ok()).count();
            if killed == 0 || Instant::now() > until {
                return;
            }
            // Give the kernel time to end them.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Reports whether a process has the mark. Zombies have no environment, and their limits are ignored.
    fn marks(&self, process: Pid) -> bool {
        let id = process.as_raw_nonzero();
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == self.variable)
            || (self.limit.is_some() && limit_of(process) == self.limit && !is_zombie(process))
    }
}

/// Returns the direct children of a process, from its thread's list or, if the kernel has no such list, from the
/// parents of all processes.
pub(super) fn children_of(parent: Pid) -> Vec<Pid> {
    let id = parent.as_raw_nonzero();
    match std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")) {
        Ok(list) => list.split_whitespace().filter_map(parse_pid).collect(),
        Err(_) => processes().filter(|&process| parent_of(process) == Some(parent)).collect(),
    }
}

fn limit_of(process: Pid) -> Option<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", process.as_raw_nonzero())).ok()?;
    let values = limits.lines().find_map(|line| line.strip_prefix(LIMIT_LINE))?;
    values.split_whitespace().nth(1)?.parse().ok()
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir(Path::new("/proc")).into_iter().flatten().flatten();
    entries.filter_map(|entry| parse_pid(entry.file_name().to_str()?))
}

fn parent_of(process: Pid) -> Option<Pid> {
    read_stat(process)?.split_whitespace().nth(1).and_then(parse_pid)
}

fn is_zombie(process: Pid) -> bool {
    read_stat(process).is_none_or(|stat| stat.trim_start().starts_with(['Z', 'X']))
}

/// Returns the stat line of a process, starting at its state.
fn read_stat(process: Pid) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The name in parentheses may contain anything, including parentheses. The fields after the last one are regular.
    stat.rsplit_once(')').map(|(_, rest)| rest.to_owned())
}

fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_is_deterministic_and_distinct_per_server() {
        let mark = ProcessMark::new("a");
        assert_eq!(mark, ProcessMark::new("a"));
        assert_ne!(mark.limit, ProcessMark::new("b").limit);
        assert!(mark.limit.is_some_and(|limit| limit >= MIN_UNIQUE_LIMIT / 2));
    }

    #[test]
    fn own_limit_and_state_are_read_from_the_kernel() {
        let own = getrlimit(Resource::Locks).maximum;
        assert_eq!(limit_of(getpid()), own);
        assert!(!is_zombie(getpid()));
    }
}
