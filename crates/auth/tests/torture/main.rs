//! One login that many processes renew at once, at an authorization server that takes every refresh token once; and the
//! same with processes that are killed in the middle of it.
//!
//! `cargo test -p wharf-auth --test torture [-- [FILTER] [--runs N] [--table FILE]]`
//!
//! The same binary is the runner, the authorization server and the processes (`renewer …`). One run is what fits into a
//! test; more are the full size: 16 processes that see 500 expiries each, and 200 kills per run.

#![allow(
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test runner prints, exits, reads its environment and may panic"
)]

mod crowd;
mod issuer;
mod kills;
mod page;
mod renewer;

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

/// What must not have happened, all but the last three.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Refresh tokens that were presented again though what came of the first time had been kept, or while the first
    /// time was still under way.
    pub doubles: usize,
    /// Logins that were needed beyond those that a kill accounts for.
    pub logins: usize,
    /// Files that could not be read.
    pub torn: usize,
    /// Processes that failed in another way.
    pub failed: usize,
    /// Files beside the file in the end.
    pub left: usize,
    /// Exchanges of a refresh token.
    pub rotations: usize,
    /// Kills between the exchange and its being kept, without which the rest proves nothing.
    pub caught: usize,
    /// Logins that such kills made necessary.
    pub accounted: usize,
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
        ["renewer", path, address, expiries] => {
            renewer::live(path.as_ref(), address.parse().unwrap(), expiries.parse().unwrap());
        }
        _ => std::process::exit(run(&read(&words))),
    }
}

fn run(arguments: &Arguments) -> i32 {
    let tests: [(&str, Torture); 2] = [("t47-crowd", crowd::run), ("o05-kills", kills::run)];
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
        let Tally { rotations, caught, accounted, .. } = self.tally;
        rotations > 0 && self.tally == Tally { rotations, caught, accounted, ..Tally::default() }
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
