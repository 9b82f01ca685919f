//! Finds leftover processes in `/proc`.

use std::fs;

/// Returns the given processes that still exist, and all children of this process.
pub fn leftover_processes(known: &[i32]) -> Vec<i32> {
    let mut left: Vec<i32> =
        known.iter().copied().filter(|pid| fs::exists(format!("/proc/{pid}")).unwrap_or(false)).collect();
    left.extend(child_pids());
    left.sort_unstable();
    left.dedup();
    left
}

fn child_pids() -> Vec<i32> {
    let ours = i32::try_from(std::process::id()).ok();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent_pid(*pid).is_some_and(|parent| Some(parent) == ours)).collect()
}

/// Reads the fourth field of `stat`. The second field, a name in parentheses, can contain any character.
fn parent_pid(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}
