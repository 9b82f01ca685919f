//! Runs cells in processes of their own, a few at a time, and counts.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wharf_testkit::http_cases::Form;
use wharf_testkit::torture::{RunnerArguments, print_result, write_table};
use wharf_testkit::{cases, http_cases};

use crate::special;

/// A cell that takes longer hangs. The longest one works for about ten seconds.
const HANG: Duration = Duration::from_secs(90);
/// Cells at once: they mostly wait.
const AT_ONCE: usize = 4;

#[derive(Clone)]
struct Cell {
    case: &'static str,
    form: &'static str,
    phase: &'static str,
    era: &'static str,
    about: &'static str,
}

#[derive(Default)]
struct Tally {
    runs: usize,
    passed: usize,
    hangs: usize,
    panics: usize,
    leaks: usize,
    duplicates: usize,
    wrong: usize,
    longest: Duration,
    /// What cells measured, each at its slowest, in milliseconds.
    measured: BTreeMap<String, u64>,
}

/// By form and case.
type Results = BTreeMap<(&'static str, &'static str), Tally>;

pub fn run(arguments: impl Iterator<Item = String>) -> i32 {
    let arguments = RunnerArguments::parse(arguments);
    let (rounds, observe) = (arguments.runs.unwrap_or(1), arguments.flags.iter().any(|flag| flag == "--observe"));
    let cells: Vec<Cell> = cells().into_iter().filter(|cell| arguments.selects(&cell.name())).collect();
    let jobs: Vec<&Cell> = (0..rounds).flat_map(|_| cells.iter()).collect();
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Results::new()));
    println!("running {} cells, {} each", cells.len(), rounds);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(cell) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (output, took) = run_cell(cell, observe);
                    let mut results = results.lock().unwrap();
                    results.entry((cell.form, cell.case)).or_default().count(cell, output.as_deref(), took, observe);
                }
            });
        }
    });
    let results = results.into_inner().unwrap();
    let (runs, passed) =
        results.values().fold((0, 0), |(runs, passed), tally| (runs + tally.runs, passed + tally.passed));
    if let Some(table) = &arguments.table {
        write_results(table, &results, rounds);
    }
    print_result(passed, runs - passed)
}

fn cells() -> Vec<Cell> {
    let stdio = cases::CASES.iter().flat_map(|case| {
        let (phases, eras) = (case.phases, case.eras);
        crossed(Cell { form: "stdio", ..Cell::of(case.name, case.about) }, phases, eras)
    });
    let http = http_cases::CASES.iter().flat_map(|case| {
        case.forms.iter().flat_map(|form| {
            let one = Cell { form: form.as_str(), ..Cell::of(case.name, case.about) };
            crossed(one, case.phases, case.eras)
        })
    });
    let own = special::OWN.iter().map(|(case, about)| Cell::of(case, about));
    let own_http = special::http::OWN.iter().flat_map(|(case, form, eras, about)| {
        let one = Cell { form: form.as_str(), ..Cell::of(case, about) };
        eras.iter().map(move |&era| Cell { era, ..one.clone() })
    });
    stdio.chain(own).chain(http).chain(own_http).collect()
}

fn crossed(
    cell: Cell,
    phases: &'static [cases::FaultPhase],
    eras: &'static [cases::ServerEra],
) -> impl Iterator<Item = Cell> {
    phases.iter().flat_map(move |phase| {
        let cell = cell.clone();
        eras.iter().map(move |era| Cell { phase: phase.as_str(), era: era.as_str(), ..cell.clone() })
    })
}

impl Cell {
    fn of(case: &'static str, about: &'static str) -> Self {
        Self { case, form: Form::Stdio.as_str(), phase: "during", era: "modern", about }
    }

    fn name(&self) -> String {
        format!("{}/{}/{}/{}", self.case, self.form, self.phase, self.era)
    }
}

/// The cell's output, or none when it had to be killed.
fn run_cell(cell: &Cell, observe: bool) -> (Option<String>, Duration) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["cell", cell.case, cell.form, cell.phase, cell.era]).stdin(Stdio::null()).stdout(Stdio::piped());
    if observe {
        command.arg("--observe");
    }
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = std::io::Read::read_to_string(&mut stdout, &mut text);
        text
    });
    let in_time = wharf_testkit::oracle::poll_until(HANG, || !matches!(child.try_wait(), Ok(None)));
    let took = began.elapsed();
    if !in_time {
        let _ = child.kill();
        let _ = child.wait();
        return (None, took);
    }
    let fine = child.wait().is_ok_and(|status| status.success());
    let text = reader.join().unwrap_or_default();
    (Some(if fine { text } else { format!("{text}\nwrong: the cell's process failed") }), took)
}

impl Tally {
    fn count(&mut self, cell: &Cell, output: Option<&str>, took: Duration, observe: bool) {
        self.runs += 1;
        self.longest = self.longest.max(took);
        let text = output.unwrap_or("hang");
        let fine = output
            .is_some_and(|text| !text.lines().any(|line| line.starts_with("wrong:") || line.starts_with("panic:")));
        self.passed += usize::from(fine);
        self.hangs += usize::from(output.is_none());
        self.panics += usize::from(text.contains("panic"));
        self.leaks += usize::from(text.contains("wrong: I3"));
        self.duplicates += usize::from(text.contains("wrong: I2"));
        self.wrong += usize::from(
            text.lines().any(|line| line.starts_with("wrong:") && !line.contains("I2:") && !line.contains("I3:")),
        );
        for (what, millis) in text.lines().filter_map(measurement) {
            let slowest = self.measured.entry(what.to_owned()).or_default();
            *slowest = millis.max(*slowest);
        }
        if !fine || observe {
            println!("test {} ... {}\n{}", cell.name(), if fine { "ok" } else { "FAILED" }, text.trim_end());
        } else {
            println!("test {} ... ok", cell.name());
        }
    }
}

/// Reads `measured: what: 123 ms`.
fn measurement(line: &str) -> Option<(&str, u64)> {
    let (what, millis) = line.strip_prefix("measured: ")?.strip_suffix(" ms")?.rsplit_once(": ")?;
    Some((what, millis.parse().ok()?))
}

fn write_results(path: &std::path::Path, results: &Results, runs: usize) {
    let mut forms: Vec<&str> = results.keys().map(|(form, _)| *form).collect();
    forms.dedup();
    let about: BTreeMap<_, &str> = cells().iter().map(|cell| ((cell.form, cell.case), cell.about)).collect();
    let rows: Vec<Vec<String>> = results
        .iter()
        .map(|(which @ (form, case), tally)| {
            let counts = [tally.runs, tally.hangs, tally.panics, tally.leaks, tally.wrong, tally.duplicates]
                .map(|count| count.to_string());
            let about = about.get(which).copied().unwrap_or_default();
            let over = if case.starts_with('P') { "in process" } else { form };
            let mut row = [over, *case, about].map(str::to_owned).to_vec();
            row.extend(counts);
            row.push(format!("{} ms", tally.longest.as_millis()));
            row
        })
        .collect();
    let failed: usize = results.values().map(|tally| tally.runs - tally.passed).sum();
    let total: usize = results.values().map(|tally| tally.runs).sum();
    let mut notes = vec![format!(
        "{total} runs: every case in every phase and era in which it means something, {runs} times each, each in a process of its own; delays divided by {} (H10 by 5, as a server asks in whole seconds), S36 with 300,000 notifications, S44 with 64 MiB, H19-empty with 300,000 events.",
        crate::cell::SCALE
    )];
    let measured = results.values().flat_map(|tally| &tally.measured);
    notes.extend(measured.map(|(what, millis)| format!("At its slowest, {what}: {millis} ms.")));
    let table = serde_json::json!({
        "title": format!("Faults of a server over {}", forms.join(", ")),
        "columns": ["over", "case", "what the server does", "runs", "hangs", "panics", "leaks", "wrong outcomes", "duplicated effects", "longest"],
        "rows": rows,
        "failed": failed,
        "notes": notes,
    });
    write_table(path, &table);
}
