//! Kernel statistics of this process and its guards.

use std::fs;
use std::time::Duration;

/// Returns the CPU time of this process, with ended threads, in steps of 10 ms.
pub fn cpu_time() -> Duration {
    cpu_time_field(14)
}

/// Returns the CPU time of reaped child processes and their descendants, in steps of 10 ms.
pub fn children_cpu_time() -> Duration {
    cpu_time_field(16)
}

/// Sums user time, field `number` in proc(5), and system time, the next field.
fn cpu_time_field(number: usize) -> Duration {
    let fields = stat_fields("self").unwrap();
    // `stat` omits the first two fields, pid and name.
    let ticks: u64 = fields[number - 3..number - 1].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// Returns the running child processes: the guards.
pub fn children() -> Vec<u32> {
    let own = std::process::id().to_string();
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let children = all.filter(|pid| stat_fields(pid).is_some_and(|fields| fields[1] == own));
    children.filter_map(|pid| pid.parse().ok()).collect()
}

/// Returns a figure of `smaps_rollup`, such as `Pss`, in KiB.
pub fn memory(pid: u32, what: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

/// Returns the fields after the command name, which may contain any character.
fn stat_fields(pid: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}
