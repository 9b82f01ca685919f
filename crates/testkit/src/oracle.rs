//! External observations after a fault: processes, descriptors, memory, and the fixture's ledger.
//!
//! Linux only: all data is read from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The environment variable that identifies a case's processes, including detached ones.
pub const MARKER: &str = "MCPH_CASE";

/// A process with a case's marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedProcess {
    pub pid: i32,
    pub cmdline: String,
    /// State as in `/proc/PID/stat`: `R`, `S`, `T` and so on.
    pub state: char,
}

/// Returns every process except this one with `MCPH_CASE=<marker>` in its environment.
///
/// Zombies have no environment: use [`zombies_of`] for those.
pub fn marked_processes(marker: &str) -> Vec<MarkedProcess> {
    let wanted = format!("{MARKER}={marker}");
    let own = std::process::id().cast_signed();
    pids()
        .into_iter()
        .filter(|pid| *pid != own)
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
        })
        .filter_map(|pid| {
            let cmdline = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let cmdline = String::from_utf8_lossy(&cmdline).replace('\0', " ").trim_end().to_owned();
            Some(MarkedProcess { pid, cmdline, state: stat(pid)?.state })
        })
        .collect()
}

/// Returns the children of a process that have exited and are not reaped.
pub fn zombies_of(pid: i32) -> Vec<i32> {
    children(pid).into_iter().filter(|(_, stat)| stat.state == 'Z').map(|(child, _)| child).collect()
}

/// Returns the children of a process, zombies included.
pub fn children_of(pid: i32) -> Vec<i32> {
    children(pid).into_iter().map(|(child, _)| child).collect()
}

/// Returns the number of open descriptors of this process.
pub fn open_fds() -> usize {
    fd_targets().len()
}

/// Returns the open descriptors of this process with their targets, except the one used for listing.
pub fn fd_targets() -> BTreeMap<i32, String> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return BTreeMap::new() };
    let looking = format!("/proc/{}/fd", std::process::id());
    entries
        .flatten()
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
            Some((entry.file_name().to_str()?.parse().ok()?, target))
        })
        .filter(|(_, target)| *target != looking)
        .collect()
}

/// Returns the peak resident memory of this process since [`reset_peak_rss`]; 0 if not available.
pub fn peak_rss_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

/// Resets the peak to the current resident memory.
pub fn reset_peak_rss() -> io::Result<()> {
    fs::write("/proc/self/clear_refs", "5")
}

/// Polls until the condition holds or the time is up. Returns whether it holds.
pub fn poll_until(limit: Duration, mut poll: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    loop {
        if poll() {
            return true;
        }
        if since.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The record written by the fault server. Lines are of these kinds: `call <tool> <nonce>` or `call <tool> id:<id>`,
/// `cancelled <id>`, `reply <method> <result|code|none>`, `opened <method>`, `violation <description>`, and for each
/// side effect of `note` the nonce alone.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub lines: Vec<String>,
}

impl Ledger {
    /// Reads the file; a missing file is an empty ledger.
    pub fn read(path: &Path) -> io::Result<Ledger> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(Ledger { lines: text.lines().map(str::to_owned).collect() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Ledger::default()),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of `tools/call` requests with this nonce.
    pub fn call_count(&self, nonce: &str) -> usize {
        self.lines_of_kind("call ").filter(|tail| tail.split_once(' ').is_some_and(|(_, which)| which == nonce)).count()
    }

    /// Returns the number of side effects with this nonce.
    pub fn effect_count(&self, nonce: &str) -> usize {
        self.lines.iter().filter(|line| *line == nonce).count()
    }

    /// Returns the number of cancellations of the request with this id.
    pub fn cancel_count(&self, id: &str) -> usize {
        self.lines_of_kind("cancelled ").filter(|tail| *tail == id).count()
    }

    /// Returns the number of opening requests (`server/discover` or `initialize`).
    pub fn open_count(&self, method: &str) -> usize {
        self.lines_of_kind("opened ").filter(|tail| *tail == method).count()
    }

    /// Returns the outcomes of the server's requests of this method: `result`, an error code, or `none`.
    pub fn replies(&self, method: &str) -> Vec<&str> {
        self.lines_of_kind("reply ").filter_map(|tail| tail.strip_prefix(method)?.strip_prefix(' ')).collect()
    }

    /// Returns the protocol violations of the client.
    pub fn violations(&self) -> Vec<&str> {
        self.lines_of_kind("violation ").collect()
    }

    /// Returns the nonces that arrived or took effect more than once. Calls without a nonce are ignored: a new process
    /// may reuse an id.
    pub fn duplicates(&self) -> Vec<String> {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for tail in self.lines_of_kind("call ") {
            if let Some((_, nonce)) = tail.split_once(' ')
                && !nonce.starts_with("id:")
            {
                *seen.entry(nonce).or_default() += 1;
            }
        }
        let often = seen.into_iter().filter(|(nonce, calls)| *calls > 1 || self.effect_count(nonce) > 1);
        often.map(|(nonce, _)| nonce.to_owned()).collect()
    }

    fn lines_of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter_map(move |line| line.strip_prefix(kind))
    }
}

struct ProcessStat {
    state: char,
    parent: i32,
}

/// Parses the text after the last parenthesis: a command name may contain any character, parentheses included.
fn stat(pid: i32) -> Option<ProcessStat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some(ProcessStat { state: fields.next()?.chars().next()?, parent: fields.next()?.parse().ok()? })
}

fn children(pid: i32) -> Vec<(i32, ProcessStat)> {
    let all = pids().into_iter().filter_map(|child| Some((child, stat(child)?)));
    all.filter(|(_, stat)| stat.parent == pid).collect()
}

fn pids() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    fn own_pid() -> i32 {
        std::process::id().cast_signed()
    }

    #[test]
    fn marked_processes_are_found_by_their_whole_marker() {
        let marker = format!("oracle-{}", own_pid());
        let mut child = Command::new("sleep").arg("60").env(MARKER, &marker).stdin(Stdio::null()).spawn().unwrap();
        let pid = child.id().cast_signed();
        // Between fork and exec the child still has this process's environment.
        assert!(poll_until(SOON, || marked_processes(&marker).iter().any(|found| found.pid == pid)));
        let found = marked_processes(&marker);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].cmdline, "sleep 60");
        assert!(marked_processes(&marker[..marker.len() - 1]).is_empty());
        assert!(children_of(own_pid()).contains(&pid));
        child.kill().unwrap();
        assert!(poll_until(SOON, || zombies_of(own_pid()).contains(&pid)));
        assert!(marked_processes(&marker).is_empty());
        child.wait().unwrap();
        assert!(!children_of(own_pid()).contains(&pid));
    }

    #[test]
    fn descriptors_are_listed_with_their_targets() {
        let file = fs::File::open("/dev/zero").unwrap();
        assert!(fd_targets().values().any(|target| target == "/dev/zero"));
        assert!(open_fds() >= 1);
        drop(file);
    }

    #[test]
    fn peak_memory_rises_with_use() {
        let before = peak_rss_kib();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(peak_rss_kib() >= before.max(60 << 10));
        drop(block);
    }

    #[test]
    fn poll_until_times_out() {
        assert!(!poll_until(Duration::from_millis(20), || false));
        assert!(poll_until(Duration::ZERO, || true));
    }

    #[test]
    fn ledger_counts_calls_effects_and_replies() {
        let text = "opened initialize\ncall note a\na\ncall note b\nb\nb\ncall echo id:1\ncall echo id:1\n\
                    cancelled 7\nreply ping result\nreply roots/list -32601\nviolation x\n";
        let ledger = Ledger { lines: text.lines().map(str::to_owned).collect() };
        assert_eq!((ledger.call_count("a"), ledger.effect_count("a"), ledger.effect_count("b")), (1, 1, 2));
        assert_eq!(ledger.duplicates(), ["b"]);
        assert_eq!(ledger.cancel_count("7"), 1);
        assert_eq!(ledger.open_count("initialize"), 1);
        assert_eq!(ledger.replies("roots/list"), ["-32601"]);
        assert_eq!(ledger.violations(), ["x"]);
        assert!(Ledger::read(Path::new("/no/such/ledger")).unwrap().lines.is_empty());
    }
}
