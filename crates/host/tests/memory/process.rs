//! What the system knows of a process.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wharf_testkit::oracle;

/// Between two looks at how much processor time was used.
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

/// What some processes did between two looks.
#[derive(Clone, Copy, Default)]
pub struct Load {
    /// Between the looks.
    pub took: Duration,
    /// Processor time of all their threads.
    pub used: Duration,
    /// How many of these ran or could run, on average, rounded up.
    pub threads: u32,
}

impl Load {
    pub fn parse(line: &str) -> Self {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        let [took, used, threads] = numbers[..] else { panic!("{line}") };
        let (took, used) = (Duration::from_nanos(took), Duration::from_nanos(used));
        Self { took, used, threads: threads.try_into().unwrap() }
    }

    pub fn line(&self) -> String {
        format!("{} {} {}", self.took.as_nanos(), self.used.as_nanos(), self.threads)
    }
}

/// Watches how much processor time this process and those with a mark use.
pub struct Watch {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Load>>,
}

impl Watch {
    pub fn start(mark: &str) -> Self {
        let (done, mark) = (Arc::new(AtomicBool::new(false)), mark.to_owned());
        let told = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            let (mut loads, mut looked) = (Vec::new(), Instant::now());
            let mut pids = processes(&mark);
            let mut before: HashMap<PathBuf, Times> = pids.iter().flat_map(|pid| threads(*pid)).collect();
            while !told.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK);
                if loads.len().is_multiple_of(20) {
                    pids = processes(&mark);
                }
                let (times, now) = (pids.iter().flat_map(|pid| threads(*pid)).collect(), Instant::now());
                loads.push(load(&before, &times, now - looked));
                (before, looked) = (times, now);
            }
            loads
        });
        Self { done, thread }
    }

    pub fn finish(self) -> Vec<Load> {
        self.done.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// This process and those with a mark.
fn processes(mark: &str) -> Vec<i32> {
    let marked = oracle::marked_processes(mark);
    marked.iter().map(|process| process.pid).chain([std::process::id().cast_signed()]).collect()
}

/// How long a thread has run, and how long it could have run but waited for a processor.
#[derive(Clone, Copy, Default)]
struct Times {
    run: Duration,
    waited: Duration,
}

impl Times {
    fn of(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let mut numbers = text.split(' ').map(|number| number.parse().ok().map(Duration::from_nanos));
        Some(Self { run: numbers.next()??, waited: numbers.next()?? })
    }
}

/// All threads of a process but the one that asks.
fn threads(pid: i32) -> impl Iterator<Item = (PathBuf, Times)> {
    let own = fs::read_link("/proc/thread-self").ok().map(|own| Path::new("/proc").join(own).join("schedstat"));
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let paths = tasks.map(|task| task.path().join("schedstat")).filter(move |path| Some(path) != own.as_ref());
    paths.filter_map(|path| Times::of(&path).map(|times| (path, times)))
}

fn load(before: &HashMap<PathBuf, Times>, now: &HashMap<PathBuf, Times>, took: Duration) -> Load {
    let (mut used, mut could) = (Duration::ZERO, Duration::ZERO);
    for (path, times) in now {
        let earlier = before.get(path).copied().unwrap_or_default();
        // A thread that was not seen before may be older than the last look.
        let run = times.run.saturating_sub(earlier.run).min(took);
        used += run;
        could += run + times.waited.saturating_sub(earlier.waited).min(took);
    }
    let average = could.as_secs_f64() / took.as_secs_f64();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few dozen at most")]
    let threads = (average.ceil() as u32).max(1);
    Load { took, used, threads }
}

pub fn used_by_this_thread() -> Duration {
    Times::of(Path::new("/proc/thread-self/schedstat")).unwrap().run
}
