//! Brings each kind of host to each of its ends, one after the other, and counts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use wharf_testkit::oracle::{self, MarkedProcess};
use wharf_testkit::torture::{RunnerArguments, print_result};

use crate::fleet::{self, Role};
use crate::host::{self, End, Host, Kind};
use crate::table;

/// How long after a graceful end something may be left.
pub const GRACEFUL: Duration = Duration::from_secs(6);
/// How long after any other.
pub const CRUDE: Duration = Duration::from_secs(2);

/// A kind of host, one of its ends, and what came of it.
pub struct Cell {
    pub kind: Kind,
    pub end: End,
    pub tally: Tally,
}

#[derive(Default)]
pub struct Tally {
    pub runs: usize,
    pub failed: usize,
    pub processes: usize,
    pub survivors: usize,
    pub by_role: BTreeMap<Role, usize>,
    pub slowest: Duration,
}

/// One run that could be carried through.
struct Seen {
    processes: usize,
    survivors: Vec<MarkedProcess>,
    guards_left: usize,
    took: Duration,
    misbehaviour: Option<String>,
}

pub fn run(arguments: impl Iterator<Item = String>) -> i32 {
    let arguments = RunnerArguments::parse(arguments);
    let rounds = arguments.runs.unwrap_or(1);
    if let Err(problem) = host::build_embedder() {
        println!("{problem}");
        return 1;
    }
    let mut cells = cells(&arguments);
    println!("running {} cells, {} each", cells.len(), rounds);
    for round in 0..rounds {
        for cell in &mut cells {
            cell.run(round);
        }
    }
    if let Some(path) = &arguments.table {
        table::write(path, &cells, rounds);
    }
    let (runs, failed) =
        cells.iter().fold((0, 0), |(runs, failed), cell| (runs + cell.tally.runs, failed + cell.tally.failed));
    print_result(runs - failed, failed)
}

fn cells(arguments: &RunnerArguments) -> Vec<Cell> {
    let all = Kind::ALL.into_iter().flat_map(|kind| End::ALL.map(|end| Cell { kind, end, tally: Tally::default() }));
    all.filter(|cell| arguments.selects(&cell.name())).collect()
}

impl Cell {
    fn name(&self) -> String {
        format!("ends/{}/{}", self.kind.as_str(), self.end.as_str())
    }

    fn run(&mut self, round: usize) {
        let seen = self.observe(round);
        let problem = match &seen {
            Ok(seen) => seen.problem(self.kind),
            Err(problem) => Some(problem.clone()),
        };
        let remark = match (&seen, &problem) {
            (_, Some(problem)) => format!("FAILED\n{problem}"),
            (Ok(seen), None) if self.kind == Kind::Unguarded => format!("ok ({} survivors)", seen.survivors.len()),
            _ => "ok".to_owned(),
        };
        println!("test {} ... {remark}", self.name());
        self.tally.count(seen.ok(), problem.is_some());
    }

    /// Starts the host, ends it, and looks until nothing is left or the time is up. Leaves nothing either way.
    fn observe(&self, round: usize) -> Result<Seen, String> {
        let marker = format!("ends-{}-{}-{}-{round}", std::process::id(), self.kind.as_str(), self.end.as_str());
        let mut host = Host::start(self.kind, marker)?;
        let processes = host.processes();
        let limit = if self.kind.is_graceful(self.end) { GRACEFUL } else { CRUDE };
        let began = Instant::now();
        host.apply(self.end);
        oracle::poll_until(limit, || host.is_gone() && host.guards_left().is_empty() && host.marked().is_empty());
        let took = began.elapsed();
        Ok(Seen {
            processes,
            survivors: host.marked(),
            guards_left: host.guards_left().len(),
            took,
            misbehaviour: host.misbehaviour(self.end),
        })
    }
}

impl Seen {
    fn problem(&self, kind: Kind) -> Option<String> {
        if self.misbehaviour.is_some() {
            return self.misbehaviour.clone();
        }
        let left = self.survivors.len() + self.guards_left;
        (kind != Kind::Unguarded && left > 0).then(|| {
            let census = fleet::census(&self.survivors);
            format!(
                "left after {} ms: {} guards; {census}\n{:?}",
                self.took.as_millis(),
                self.guards_left,
                self.survivors
            )
        })
    }
}

impl Tally {
    fn count(&mut self, seen: Option<Seen>, failed: bool) {
        self.runs += 1;
        self.failed += usize::from(failed);
        let Some(seen) = seen else { return };
        self.processes = self.processes.max(seen.processes);
        self.survivors += seen.survivors.len() + seen.guards_left;
        self.slowest = self.slowest.max(seen.took);
        for process in &seen.survivors {
            *self.by_role.entry(fleet::role_of(&process.cmdline)).or_default() += 1;
        }
    }
}
