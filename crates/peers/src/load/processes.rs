//! Processor time and memory of a process and everything it has started.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// What a set of processes has used.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessUse {
    pub processor: Duration,
    pub resident_kib: u64,
}

/// Returns a process and its descendants, without those whose program ends with `except`.
pub fn process_tree(root: u32, except: &str) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = all_pids().into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut tree = BTreeSet::from([root]);
    loop {
        let is_new = |(pid, parent): &&(u32, u32)| tree.contains(parent) && !tree.contains(pid);
        let children: Vec<u32> = parents.iter().filter(is_new).map(|(pid, _)| *pid).collect();
        if children.is_empty() {
            break;
        }
        tree.extend(children);
    }
    tree.into_iter().filter(|pid| except.is_empty() || !program(*pid).ends_with(except)).collect()
}

/// Sums the use of processes.
pub fn process_use(pids: &[u32]) -> ProcessUse {
    pids.iter().fold(ProcessUse::default(), |sum, pid| ProcessUse {
        processor: sum.processor + processor_time(*pid),
        resident_kib: sum.resident_kib + resident_kib(*pid),
    })
}

/// Returns the processor time of all threads of a process, from the kernel's accounting.
fn processor_time(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let accounts = threads.filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok());
    let nanoseconds = accounts.filter_map(|account| account.split(' ').next()?.parse::<u64>().ok());
    Duration::from_nanos(nanoseconds.sum())
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

fn all_pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Parses the text after the last parenthesis: a command name may contain any character.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the first word of the command line.
fn program(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(words.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn descendants_are_found_except_by_program() {
        let mut child = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let own = std::process::id();
        let has = |except: &str, name: &str| process_tree(own, except).iter().any(|pid| program(*pid).ends_with(name));
        while !has("", "sleep") {
            std::thread::yield_now();
        }
        assert!(has("sleep", "sh") && !has("sleep", "sleep"));
        let sleeping = process_tree(child.id(), "sh");
        child.kill().unwrap();
        child.wait().unwrap();
        sleeping.iter().for_each(|pid| drop(Command::new("kill").arg(pid.to_string()).status()));
    }
}
