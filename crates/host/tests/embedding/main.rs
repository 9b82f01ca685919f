//! A host works in every usual form of `main`, and leaves no process however its program ends.
//!
//! `cargo test -p wharf --test embedding [-- [FILTER] [--runs N] [--table FILE]]`
//!
//! The forms are programs of their own. This binary is the runner and the server (`faultd …`), which has daemons in
//! other sessions.

#![allow(
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test runner prints, exits, reads its environment and may panic"
)]

mod form;
mod programs;
mod table;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use form::{End, Form};
use programs::FormPrograms;

/// Runs of each form in the normal suite.
const DEFAULT_RUNS: usize = 4;

struct Arguments {
    filter: String,
    runs: usize,
    table: Option<PathBuf>,
}

/// Results of one form.
pub struct Row {
    form: Form,
    runs: usize,
    failed: usize,
    slowest: Duration,
}

fn main() {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("faultd") => wharf_testkit::faultd::run(words),
        _ => std::process::exit(run(&read_arguments(std::env::args().skip(1)))),
    }
}

fn run(arguments: &Arguments) -> i32 {
    let programs = match programs::build_forms() {
        Ok(programs) => programs,
        Err(problem) => {
            println!("{problem}");
            return 1;
        }
    };
    let forms = Form::ALL.into_iter().filter(|form| form.name().contains(&arguments.filter));
    let rows: Vec<Row> = forms.map(|form| run_form(form, &programs, arguments.runs)).collect();
    if let Some(table) = &arguments.table {
        table::write(table, &rows);
    }
    let failed = rows.iter().filter(|row| row.failed > 0).count();
    println!(
        "\ntest result: {}. {} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out",
        if failed == 0 { "ok" } else { "FAILED" },
        rows.len() - failed
    );
    i32::from(failed > 0 || rows.is_empty())
}

/// Starts a form this many times. Every second run ends by SIGKILL.
fn run_form(form: Form, programs: &FormPrograms, runs: usize) -> Row {
    let mut row = Row { form, runs, failed: 0, slowest: Duration::ZERO };
    for round in 0..runs {
        let end = if round % 2 == 0 { End::Kill } else { End::Close };
        let began = Instant::now();
        if let Err(problem) = form::run(form, programs, round, end) {
            println!("embedding/{} run {round}, {end:?}: {problem}", form.name());
            row.failed += 1;
        }
        row.slowest = row.slowest.max(began.elapsed());
    }
    let outcome = if row.failed == 0 { "ok" } else { "FAILED" };
    println!("test embedding/{} ({} of {runs}) ... {outcome}", form.name(), runs - row.failed);
    row
}

fn read_arguments(mut words: impl Iterator<Item = String>) -> Arguments {
    let mut arguments = Arguments { filter: String::new(), runs: DEFAULT_RUNS, table: None };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--runs" => arguments.runs = words.next().and_then(|runs| runs.parse().ok()).unwrap_or(DEFAULT_RUNS),
            "--table" => arguments.table = words.next().map(PathBuf::from),
            other if !other.starts_with('-') => arguments.filter = word,
            _ => {}
        }
    }
    arguments
}
