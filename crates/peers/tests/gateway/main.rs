//! Whole gateways with many clients and servers: what they share, what they keep apart, and what is left of them.
//!
//! `cargo test -p wharf-peers --test gateway [-- [FILTER] [--full] [--runs N] [--table FILE]]`
//!
//! Without `--full` each case is small enough for every run of the tests. `cargo xtask prove gateway` runs the whole.
//! The programs `wharf` and `bench-gateway` are those beside the test.

#![allow(
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test runner prints, exits, reads its environment and may panic"
)]

mod agents;
mod clients;
mod kills;
mod principals;
mod served;
mod sessions;
mod sharing;
mod stalled;
mod threats;

use std::time::Instant;

use serde_json::json;
use wharf_testkit::torture::{RunnerArguments, print_result, write_table};

/// How much a case does.
#[derive(Clone, Copy)]
pub struct Scale {
    pub is_full: bool,
    /// Number of kills, instead of the usual one.
    pub runs: Option<usize>,
}

impl Scale {
    /// Returns the number for this scale.
    pub fn pick(self, small: usize, full: usize) -> usize {
        if self.is_full { full } else { small }
    }
}

/// What a case found.
#[derive(Default)]
pub struct Findings {
    /// What was done, and how often.
    pub amount: String,
    pub figures: Vec<String>,
    pub problems: Vec<String>,
}

impl Findings {
    pub fn new(amount: impl Into<String>) -> Self {
        Self { amount: amount.into(), ..Self::default() }
    }

    pub fn figure(&mut self, figure: impl Into<String>) {
        self.figures.push(figure.into());
    }

    /// Notes a problem unless the condition holds.
    pub fn require(&mut self, holds: bool, problem: impl FnOnce() -> String) {
        if !holds {
            self.problems.push(problem());
        }
    }
}

type Case = (&'static str, fn(Scale) -> Findings);

const CASES: [Case; 12] = [
    ("clients on SDKs of other makers", clients::sdks),
    ("command lines of other makers", clients::command_lines),
    ("agents of other makers", agents::agents),
    ("clients that declare nothing share one process of each server", sharing::declaring_nothing),
    ("call of a server that has failed says why", sharing::failed_server),
    ("clients that declare forms and roots, one after the other", sharing::one_after_the_other),
    ("clients that declare forms and roots, overlapping", sharing::overlapping),
    ("sessions with one call each", sessions::memory),
    ("calls by principals with marks, servers killed", principals::marks),
    ("readers that stall", stalled::readers),
    ("nothing of a client reaches servers or other clients unasked", threats::leaks),
    ("gateway killed with SIGKILL under load", kills::kills),
];

fn main() {
    let arguments = RunnerArguments::parse(std::env::args().skip(1));
    let scale = Scale { is_full: arguments.flags.iter().any(|flag| flag == "--full"), runs: arguments.runs };
    let mut rows = Vec::new();
    let mut failed = 0;
    for (name, case) in CASES.iter().filter(|(name, _)| arguments.selects(name)) {
        let began = Instant::now();
        let found = case(scale);
        let took = began.elapsed().as_secs_f64();
        let figures = found.figures.join("; ");
        let remark = if found.problems.is_empty() { "ok".to_owned() } else { format!("FAILED: {:?}", found.problems) };
        println!("test gateway/{name} ({}, {took:.1} s: {figures}) ... {remark}", found.amount);
        failed += usize::from(!found.problems.is_empty());
        let result = if found.problems.is_empty() { "as required".to_owned() } else { found.problems.join("; ") };
        rows.push(json!([name, found.amount, figures, result, format!("{took:.0} s")]));
    }
    if let Some(path) = &arguments.table {
        let table = json!({
            "title": "Gateway",
            "columns": ["what", "amount", "figures", "result", "took"],
            "rows": rows,
            "failed": failed,
            "notes": [NOTE],
        });
        write_table(path, &table);
    }
    std::process::exit(print_result(rows.len() - failed, failed));
}

const NOTE: &str = "Real processes: `wharf serve`, clients on pipes and over HTTP, and a server of 2025-11-25 on stdin \
                    and stdout that writes down every call. Memory is the resident set of the gateway process. A call \
                    that a killed server had received ends with an error and is not sent again.";
