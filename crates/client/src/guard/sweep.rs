//! Finds processes in `/proc`: those below a guard, and those that bear a server's mark.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// The environment variable that marks every process of one server.
pub(super) const MARK: &str = "WHARF_SERVER";

/// The direct children of a process, from its thread's list or, where the kernel keeps none, from everyone's parent.
pub(super) fn children_of(parent: Pid) -> Vec<Pid> {
    let id = parent.as_raw_nonzero();
    match std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")) {
        Ok(list) => list.split_whitespace().filter_map(pid).collect(),
        Err(_) => processes().filter(|&process| parent_of(process) == Some(parent)).collect(),
    }
}

/// Kills every process whose environment bears the mark. Blocking; for the rare case that a guard was killed.
///
/// Twice over, since one that is just forking may be missed the first time.
pub(super) fn kill_marked(mark: &str) -> usize {
    let needle = format!("{MARK}={mark}");
    let mut killed = 0;
    for _ in 0..2 {
        for process in processes().filter(|&process| bears(process, needle.as_bytes())) {
            killed += usize::from(kill_process(process, Signal::KILL).is_ok());
        }
    }
    killed
}

fn bears(process: Pid, needle: &[u8]) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", process.as_raw_nonzero())).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(|variable| variable == needle)
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir(Path::new("/proc")).into_iter().flatten().flatten();
    entries.filter_map(|entry| pid(entry.file_name().to_str()?))
}

fn parent_of(process: Pid) -> Option<Pid> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The name in parentheses may hold anything, also more parentheses: what follows the last one is regular.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1).and_then(pid)
}

fn pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}
