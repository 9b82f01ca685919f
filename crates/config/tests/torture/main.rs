//! A configuration file that many processes edit at once, and whose writers are killed in the middle of it.
//!
//! `cargo test -p wharf-config --test torture [-- [FILTER] [--runs N] [--table FILE]]`
//!
//! The same binary is the runner and the writers (`writer …`). One run is what fits into a test; twenty are the full
//! size: 16 processes with 1,000 edits each, and 20,000 kills.

#![allow(
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test runner prints, exits, reads its environment and may panic"
)]

mod crowd;
mod kills;
mod page;

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What came of one kind of torture.
pub struct Row {
    name: &'static str,
    what: String,
    times: usize,
    tally: Tally,
    took: Duration,
}

/// What must not have happened, all but the last.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Edits that are not in the file.
    pub lost: usize,
    /// Files that were not whole, or without their comments.
    pub torn: usize,
    /// Edits that had to wait for somebody who was dead.
    pub held_up: usize,
    /// Files beside the file after the next edit.
    pub left: usize,
    /// Ends in the middle of an edit, without which the rest proves nothing.
    pub caught: usize,
}

/// Does its worst as many times as there are runs.
type Torture = fn(usize) -> Row;

struct Arguments {
    filter: String,
    runs: usize,
    table: Option<PathBuf>,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words {
        ["writer", "add", path, process, count] => crowd::add(path.as_ref(), process, count.parse().unwrap()),
        ["writer", "rewrite", path] => kills::rewrite(path.as_ref()),
        _ => std::process::exit(run(&read(&words))),
    }
}

fn run(arguments: &Arguments) -> i32 {
    let tests: [(&str, Torture); 2] = [("c08-crowd", crowd::run), ("c10-kills", kills::run)];
    let tests = tests.iter().filter(|(name, _)| name.contains(&arguments.filter));
    let rows: Vec<Row> = tests.map(|(_, test)| timed(*test, arguments.runs)).collect();
    for row in &rows {
        let remark = if row.is_good() { "ok".to_owned() } else { format!("FAILED: {:?}", row.tally) };
        println!("test torture/{} ({} times, {:.1} s) ... {remark}", row.name, row.times, row.took.as_secs_f64());
    }
    if let Some(table) = &arguments.table {
        page::write(table, &rows);
    }
    let failed = rows.iter().filter(|row| !row.is_good()).count();
    println!(
        "\ntest result: {}. {} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out",
        if failed == 0 { "ok" } else { "FAILED" },
        rows.len() - failed
    );
    i32::from(failed > 0 || rows.is_empty())
}

fn timed(test: Torture, runs: usize) -> Row {
    let began = Instant::now();
    let row = test(runs);
    Row { took: began.elapsed(), ..row }
}

impl Row {
    fn is_good(&self) -> bool {
        self.tally == Tally { caught: self.tally.caught, ..Tally::default() }
    }
}

fn read(words: &[&str]) -> Arguments {
    let mut arguments = Arguments { filter: String::new(), runs: 1, table: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--runs" => arguments.runs = words.next().and_then(|runs| runs.parse().ok()).unwrap_or(1),
            "--table" => arguments.table = words.next().map(PathBuf::from),
            word if !word.starts_with('-') => arguments.filter = word.to_owned(),
            _ => {}
        }
    }
    arguments
}
