//! One case in one form, phase and era: run it, then ask the oracle what is left.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wharf_client::{ConnectOptions, Limits};
use wharf_spec::{EnvValue, Environment, StdioSpec};
use wharf_testkit::cases::FaultPhase;
use wharf_testkit::http_cases::Form;
use wharf_testkit::oracle::{self, Ledger};

use crate::fixture::Fixture;
use crate::{exercise, expect, expect_http, special};

/// Every delay of the client and of the fixture is divided by this.
pub const SCALE: u32 = 20;

/// Threads that have panicked.
static PANICS: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone)]
pub struct Cell {
    pub case: String,
    pub form: Form,
    pub phase: FaultPhase,
    pub era: String,
    pub marker: String,
    pub folder: PathBuf,
    pub limits: Limits,
    /// Further arguments for the fixture.
    pub extra: Vec<String>,
}

/// Runs `cell CASE FORM PHASE ERA [--observe]` and prints a line for everything that is wrong.
pub fn run(arguments: impl Iterator<Item = String>) -> i32 {
    let words: Vec<String> = arguments.collect();
    let [case, form, phase, era, rest @ ..] = &words[..] else {
        println!("usage: cell CASE FORM PHASE ERA [--observe]");
        return 2;
    };
    let observe = !rest.is_empty();
    std::panic::set_hook(Box::new(|panic| {
        if panic.payload().downcast_ref() == Some(&special::ON_PURPOSE) {
            return;
        }
        PANICS.fetch_add(1, Ordering::Relaxed);
        println!("panic: {panic}");
    }));
    let marker = format!("{}-{}", std::process::id(), Instant::now().elapsed().as_nanos());
    let folder = std::env::temp_dir().join(format!("wharf-fault-{marker}"));
    std::fs::create_dir_all(&folder).unwrap();
    let phases = [FaultPhase::Before, FaultPhase::Ready, FaultPhase::During, FaultPhase::After];
    let cell = Cell {
        case: case.clone(),
        form: [Form::Stdio, Form::Http, Form::Sse].into_iter().find(|known| known.as_str() == form).unwrap(),
        phase: phases.into_iter().find(|known| known.as_str() == phase).unwrap(),
        era: era.clone(),
        marker,
        folder,
        limits: Limits::default().with_delays_divided(pace(case)),
        extra: modest(case).iter().map(|&word| word.to_owned()).collect(),
    };
    let problems = cell.check(observe);
    let _ = std::fs::remove_dir_all(&cell.folder);
    for problem in &problems {
        println!("wrong: {problem}");
    }
    i32::from(!problems.is_empty())
}

/// Arguments that keep a heavy fault within a twentieth of the usual time, also on a busy machine.
fn modest(case: &str) -> &'static [&'static str] {
    match case {
        "S36" => &["--count", "300000"],
        "S44" => &["--bytes", "67108864"],
        "H19-empty" => &["--count", "300000"],
        // Well within what a call may take, which comments do not prolong.
        "L10" => &["--count", "10"],
        _ => &[],
    }
}

/// By how much the client's delays are divided. What a server asks for in seconds cannot be shortened, so whoever is to
/// wait for it has to be more patient.
fn pace(case: &str) -> u32 {
    if case.starts_with("H10") { SCALE / 4 } else { SCALE }
}

impl Cell {
    /// Exercises the client in a runtime of its own and lists everything that is not as it should be.
    fn check(&self, observe: bool) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let metrics = runtime.metrics();
        // The blocking pool's thread and its descriptors are part of the runtime, not of a connection.
        runtime.block_on(async { tokio::task::spawn_blocking(|| ()).await.unwrap() });
        let (tasks, descriptors) = (metrics.num_alive_tasks(), oracle::fd_targets());
        let _ = oracle::reset_peak_rss();
        let memory = oracle::peak_rss_kib();
        let began = Instant::now();
        let mut problems = runtime.block_on(async {
            if let Some(special) = special::find(self) {
                return special(self).await;
            }
            let server = (self.form != Form::Stdio).then(|| Fixture::start(self));
            let observed = exercise::run(self, server.as_ref()).await;
            if observe {
                println!("observed: {observed} in {} ms", began.elapsed().as_millis());
                println!("ledger: {:?}", self.ledger().lines);
                return Vec::new();
            }
            // While the server is still there: it may be about to write something down.
            if self.form == Form::Stdio { expect::check(self, &observed) } else { expect_http::check(self, &observed) }
        });
        self.look_for_leaks(&mut problems, || metrics.num_alive_tasks() <= tasks, descriptors.len());
        let peak = oracle::peak_rss_kib().saturating_sub(memory);
        if peak > 96 << 10 {
            problems.push(format!("I4: {} MiB more memory at the peak", peak >> 10));
        }
        let ledger = self.ledger();
        if !ledger.duplicates().is_empty() {
            problems.push(format!("I2: sent more than once: {:?}", ledger.duplicates()));
        }
        if !ledger.violations().is_empty() {
            problems.push(format!("the server saw the protocol broken: {:?}", ledger.violations()));
        }
        if PANICS.load(Ordering::Relaxed) > 0 {
            problems.push("a thread panicked".to_owned());
        }
        problems
    }

    fn look_for_leaks(&self, problems: &mut Vec<String>, tasks_ended: impl Fn() -> bool, descriptors: usize) {
        let own = std::process::id().cast_signed();
        let max_wait = Duration::from_secs(3);
        if !oracle::poll_until(max_wait, || oracle::marked_processes(&self.marker).is_empty()) {
            problems.push(format!("I3: processes left: {:?}", oracle::marked_processes(&self.marker)));
        }
        if !oracle::poll_until(max_wait, || oracle::children_of(own).is_empty()) {
            problems.push(format!(
                "I3: children left: {:?}, zombies {:?}",
                oracle::children_of(own),
                oracle::zombies_of(own)
            ));
        }
        if !oracle::poll_until(max_wait, tasks_ended) {
            problems.push("I3: tasks left".to_owned());
        }
        if !oracle::poll_until(max_wait, || oracle::open_fds() <= descriptors) {
            problems.push(format!("I3: descriptors left: {:?}", oracle::fd_targets()));
        }
    }

    /// What the fixture is started with, to commit `fault` in this cell.
    pub fn arguments(&self, fault: &str) -> Vec<String> {
        let words = ["faultd", self.form.as_str(), fault, "--phase", self.phase.as_str(), "--era", &self.era];
        let mut arguments: Vec<String> = words.map(str::to_owned).to_vec();
        let (ledger, scale) = (self.folder.join("ledger").display().to_string(), SCALE.to_string());
        arguments.extend(["--ledger".to_owned(), ledger, "--scale".to_owned(), scale]);
        arguments.extend(self.extra.iter().cloned());
        arguments
    }

    /// The fixture as a server to start.
    pub fn spec(&self) -> StdioSpec {
        StdioSpec {
            program: std::env::current_exe().unwrap().into(),
            args: self.arguments(&self.case).into_iter().map(Into::into).collect(),
            env: vec![(oracle::MARKER.into(), EnvValue::Plain(self.marker.clone().into()))],
            ..StdioSpec::default()
        }
    }

    pub fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::default();
        options.name = self.case.clone();
        options.surroundings = Environment { env: std::env::vars_os().collect(), cwd: self.folder.clone() };
        options.limits = self.limits.clone();
        options
    }

    pub fn ledger(&self) -> Ledger {
        Ledger::read(&self.folder.join("ledger")).unwrap_or_default()
    }
}
