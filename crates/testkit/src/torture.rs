//! Test runners that `cargo xtask prove` calls, and the one of the torture tests: each is run, timed, printed in the format of `cargo test` and, on request, written as a
//! table for the documentation.
//!
//! Arguments: `[FILTER] [--runs N] [--table FILE]`.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Counts of one torture test.
pub trait Tally: Debug + Copy {
    /// Reports whether nothing forbidden happened.
    fn is_good(&self) -> bool;
    /// Returns the cells of the table after the description and the number of times.
    fn cells(&self) -> Vec<usize>;
}

/// Result of one torture test.
pub struct TortureRow<T> {
    pub name: &'static str,
    pub what: String,
    pub times: usize,
    pub tally: T,
}

/// A torture test: it is given the number of runs.
pub type TortureTest<T> = fn(usize) -> TortureRow<T>;

/// Tests with the texts of their table.
pub struct TortureSuite<T: 'static> {
    pub tests: &'static [(&'static str, TortureTest<T>)],
    pub title: &'static str,
    /// Headings of the cells of the tally.
    pub columns: &'static [&'static str],
    pub note: &'static str,
}

/// Arguments of a test runner.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RunnerArguments {
    pub filter: Option<String>,
    /// Number after `--runs`.
    pub runs: Option<usize>,
    pub table: Option<PathBuf>,
    /// Other flags, such as those of `cargo test`.
    pub flags: Vec<String>,
}

impl RunnerArguments {
    pub fn parse<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Self {
        let (mut arguments, mut words) = (Self::default(), words.into_iter().map(Into::into));
        while let Some(word) = words.next() {
            match word.as_str() {
                "--runs" => arguments.runs = words.next().and_then(|runs| runs.parse().ok()),
                "--table" => arguments.table = words.next().map(PathBuf::from),
                flag if flag.starts_with('-') => arguments.flags.push(word),
                _ => arguments.filter = Some(word),
            }
        }
        arguments
    }

    /// Reports whether a test of this name is selected.
    pub fn selects(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()))
    }
}

/// Prints the last line of a test runner and returns its exit code. No test at all is a failure.
pub fn print_result(passed: usize, failed: usize) -> i32 {
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out");
    i32::from(failed > 0 || passed == 0)
}

/// Writes a table for `cargo xtask prove`.
pub fn write_table(path: &Path, table: &Value) {
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    std::fs::write(path, table.to_string()).expect("the table is writable");
}

impl<T: Tally> TortureSuite<T> {
    /// Runs the selected tests and returns the exit code.
    pub fn run(&self, words: &[&str]) -> i32 {
        let arguments = RunnerArguments::parse(words.iter().copied());
        let tests = self.tests.iter().filter(|(name, _)| arguments.selects(name));
        let runs = arguments.runs.unwrap_or(1);
        let rows: Vec<(TortureRow<T>, Duration)> = tests.map(|(_, test)| run_timed(*test, runs)).collect();
        for (row, took) in &rows {
            let remark = if row.tally.is_good() { "ok".to_owned() } else { format!("FAILED: {:?}", row.tally) };
            println!("test torture/{} ({} times, {:.1} s) ... {remark}", row.name, row.times, took.as_secs_f64());
        }
        let failed = rows.iter().filter(|(row, _)| !row.tally.is_good()).count();
        if let Some(table) = &arguments.table {
            self.write_table(table, &rows, failed);
        }
        print_result(rows.len() - failed, failed)
    }

    fn write_table(&self, path: &Path, rows: &[(TortureRow<T>, Duration)], failed: usize) {
        let row = |(row, took): &(TortureRow<T>, Duration)| -> Vec<String> {
            let counts = [row.times].into_iter().chain(row.tally.cells()).map(|count| count.to_string());
            [row.what.clone()].into_iter().chain(counts).chain([format!("{:.0} s", took.as_secs_f64())]).collect()
        };
        let columns = [&["what", "times"][..], self.columns, &["took"]].concat();
        let table = json!({
            "title": self.title,
            "columns": columns,
            "rows": rows.iter().map(row).collect::<Vec<_>>(),
            "failed": failed,
            "notes": [self.note],
        });
        write_table(path, &table);
    }
}

fn run_timed<T>(test: TortureTest<T>, runs: usize) -> (TortureRow<T>, Duration) {
    let began = Instant::now();
    (test(runs), began.elapsed())
}
