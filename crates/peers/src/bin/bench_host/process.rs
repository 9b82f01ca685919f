//! What the kernel knows of this process and of its guards.

use std::fs;
use std::time::Duration;

/// What this process has run for, threads that have ended included; to a hundredth of a second.
pub fn processor_time() -> Duration {
    ticks(14)
}

/// What the processes have run for that this one has waited for, and theirs; to a hundredth of a second.
pub fn processor_time_of_children() -> Duration {
    ticks(16)
}

/// The time in user mode, which is the `number`-th field in the manual's count, and in the kernel, which is the next.
fn ticks(number: usize) -> Duration {
    let fields = stat("self").unwrap();
    // The first two fields of the manual, pid and name, are not among these.
    let ticks: u64 = fields[number - 3..number - 1].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// The processes this one has started that still run: the guards.
pub fn children() -> Vec<u32> {
    let own = std::process::id().to_string();
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let children = all.filter(|pid| stat(pid).is_some_and(|fields| fields[1] == own));
    children.filter_map(|pid| pid.parse().ok()).collect()
}

/// A figure of `smaps_rollup`, such as `Pss`, in KiB.
pub fn memory(pid: u32, what: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

/// The fields behind the command's name, which may hold anything.
fn stat(pid: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}
