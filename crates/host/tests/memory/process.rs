//! What the system knows of a process.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use wharf_testkit::oracle;

/// Between two looks at which threads run.
const LOOK: Duration = Duration::from_millis(25);

/// A field of `/proc/<pid>/status`, in KiB.
pub fn memory(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

/// Makes the present memory the highest there has been.
pub fn reset_peak() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// Processor time of a process, in ticks of 10 ms.
pub fn ticks(pid: i32) -> u64 {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return 0 };
    // The name stands in brackets and may have blanks in it.
    let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
    after.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Counts the threads of this process and of those with a mark that run or could run, from time to time.
pub struct Runnable {
    done: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Runnable {
    pub fn watch(mark: &str) -> Self {
        let (done, mark) = (Arc::new(AtomicBool::new(false)), mark.to_owned());
        let told = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            let (mut pids, mut seen, mut looks) = (Vec::new(), 0, 0u32);
            while !told.load(Ordering::Relaxed) {
                if looks.is_multiple_of(20) {
                    pids = oracle::marked_processes(&mark).iter().map(|process| process.pid).collect();
                    pids.push(std::process::id().cast_signed());
                }
                // Without this very thread.
                seen += pids.iter().map(|pid| runnable(*pid)).sum::<u32>().saturating_sub(1);
                looks += 1;
                std::thread::sleep(LOOK);
            }
            seen.div_ceil(looks.max(1))
        });
        Self { done, thread }
    }

    /// How many there were on average, rounded up.
    pub fn finish(self) -> u32 {
        self.done.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn runnable(pid: i32) -> u32 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let runs = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, after)| after.starts_with('R'))
    };
    tasks.flatten().map(|task| u32::from(runs(task))).sum()
}
