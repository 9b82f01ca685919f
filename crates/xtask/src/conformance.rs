//! `cargo xtask conformance`: runs the public conformance suite against this client and counts strictly.
//!
//! The suite's own batch mode ignores the client's exit status and passes scenarios in which nothing was checked. Here
//! each scenario runs on its own, and passes only if suite and client exit with success and at least one check passed.
//! No failures are expected or ignored.

mod page;
mod server;
mod suite;

use std::sync::Mutex;
use std::time::Instant;

use crate::run::{TaskResult, cargo, run, say};
use crate::test::TestCounts;

use page::PagePart;
use suite::{ConformanceSuite, ScenarioVerdict, SuiteSubject};

pub use server::run_cases as run_server_cases;

/// Arguments to the suite: the revisions, and `extension` for scenarios outside of any revision.
const REVISIONS: [&str; 5] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", EXTENSION_SCENARIOS];
const EXTENSION_SCENARIOS: &str = "extension";

/// A scenario that measures a delay and must run alone.
const TIMED_SCENARIO: &str = "sse-retry";

/// Maximum number of concurrent scenarios.
const MAX_CONCURRENT: usize = 2;

/// Runs the command with its arguments.
pub fn conformance(words: &[&str]) -> TaskResult {
    if let ["server", rest @ ..] = words {
        return server::server_conformance(rest);
    }
    let plan = ConformancePlan::parse(words)?;
    run(cargo().args(["build", "--package", "wharf-conformance"]))?;
    let played = run_scenarios(&plan, &ConformanceSuite::install(&[])?)?;
    if plan.table {
        page::write_part(PagePart::Client, &page::page(&played)?)?;
        say!("wrote evidence/conformance.md");
    }
    let TestCounts { passed, failed } = summarize(&played);
    println!("{passed} passed, {failed} failed");
    match (failed, passed) {
        (0, 0) => Err("no scenario ran".into()),
        (0, _) => Ok(()),
        _ => Err("conformance scenarios failed".into()),
    }
}

/// Runs all scenarios as part of `cargo xtask test`. The client must be built already. Every started process gets the
/// variables of `environment`.
pub fn run_all(environment: &[(&str, &str)]) -> TaskResult<TestCounts> {
    let played = run_scenarios(&ConformancePlan::default(), &ConformanceSuite::install(environment)?)?;
    Ok(summarize(&played))
}

/// The selected scenarios, and the option to write the page.
#[derive(Debug, Default, PartialEq)]
struct ConformancePlan<'a> {
    revision: Option<&'a str>,
    scenario: Option<&'a str>,
    table: bool,
}

impl<'a> ConformancePlan<'a> {
    fn parse(words: &[&'a str]) -> TaskResult<Self> {
        let mut plan = Self::default();
        let mut words = words.iter().copied().enumerate();
        while let Some((position, word)) = words.next() {
            match word {
                "client" if position == 0 => {}
                "--table" => plan.table = true,
                "--scenario" => {
                    let (_, name) = words.next().ok_or("--scenario needs a name")?;
                    plan.scenario = Some(name);
                }
                revision if REVISIONS.contains(&revision) => plan.revision = Some(revision),
                other => {
                    return Err(
                        format!("conformance: expected {} or --scenario, not {other}", REVISIONS.join(", ")).into()
                    );
                }
            }
        }
        if plan.table && (plan.revision, plan.scenario) != (None, None) {
            return Err("--table cannot be combined with a revision or --scenario".into());
        }
        Ok(plan)
    }

    fn includes(&self, turn: &ScenarioRun) -> bool {
        self.scenario.is_none_or(|scenario| scenario == turn.scenario)
    }
}

/// One scenario at one revision.
#[derive(Debug, Clone, PartialEq)]
struct ScenarioRun {
    revision: &'static str,
    scenario: String,
}

/// The result of one scenario run.
struct ScenarioResult {
    turn: ScenarioRun,
    verdict: ScenarioVerdict,
}

/// Runs the selected scenarios and prints a line for each. Returns the results in the suite's order.
fn run_scenarios(plan: &ConformancePlan, suite: &ConformanceSuite) -> TaskResult<Vec<ScenarioResult>> {
    let mut turns = Vec::new();
    for revision in REVISIONS.into_iter().filter(|revision| plan.revision.is_none_or(|wanted| wanted == *revision)) {
        let scenarios = suite.scenarios("--client", revision)?.into_iter();
        turns.extend(scenarios.map(|scenario| ScenarioRun { revision, scenario }).filter(|turn| plan.includes(turn)));
    }
    let played = run_turns(&turns, TIMED_SCENARIO, |turn| suite.run(turn, &SuiteSubject::Client))?;
    say!("logs are in {}", suite.logs().display());
    Ok(played)
}

/// Runs the scenarios, `alone` after all others. Returns the results in the suite's order.
fn run_turns(
    turns: &[ScenarioRun],
    alone: &str,
    run: impl Fn(&ScenarioRun) -> TaskResult<ScenarioVerdict> + Sync,
) -> TaskResult<Vec<ScenarioResult>> {
    let start = Instant::now();
    let (alone, free): (Vec<_>, Vec<_>) = turns.iter().cloned().partition(|turn| turn.scenario == alone);
    let mut played = run_concurrently(free, MAX_CONCURRENT, &run)?;
    played.extend(run_concurrently(alone, 1, &run)?);
    played.sort_by_key(|played| turns.iter().position(|turn| *turn == played.turn));
    say!("{} scenarios in {:.0} s", played.len(), start.elapsed().as_secs_f64());
    Ok(played)
}

/// Runs the scenarios, `at_once` at a time.
fn run_concurrently(
    turns: Vec<ScenarioRun>,
    at_once: usize,
    run: &(impl Fn(&ScenarioRun) -> TaskResult<ScenarioVerdict> + Sync),
) -> TaskResult<Vec<ScenarioResult>> {
    let queue = Mutex::new(turns.into_iter());
    let next = || queue.lock().ok()?.next();
    let work = || {
        let mut played = Vec::new();
        while let Some(turn) = next() {
            let verdict = run(&turn).map_err(|failure| failure.to_string())?;
            println!("{}", result_line(&turn, &verdict));
            played.push(ScenarioResult { turn, verdict });
        }
        Ok::<_, String>(played)
    };
    let lots = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().map_err(|_| "a worker panicked")).collect::<Vec<_>>()
    });
    let mut played = Vec::new();
    for lot in lots {
        played.extend(lot??);
    }
    Ok(played)
}

fn result_line(turn: &ScenarioRun, verdict: &ScenarioVerdict) -> String {
    let mark = if verdict.is_passed() { "ok" } else { "FAIL" };
    format!("{mark:<4} {:<10} {:<36} {verdict}", turn.revision, turn.scenario)
}

/// Counts the results and reports the failures.
fn summarize(played: &[ScenarioResult]) -> TestCounts {
    let (passed, failed): (Vec<_>, Vec<_>) = played.iter().partition(|played| played.verdict.is_passed());
    for ScenarioResult { turn, verdict } in &failed {
        say!("{} at {}:\n{}", turn.scenario, turn.revision, verdict.failure_summary());
    }
    TestCounts { passed: passed.len(), failed: failed.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed() {
        assert_eq!(ConformancePlan::parse(&[]).unwrap(), ConformancePlan::default());
        let one = ConformancePlan { revision: Some("2025-11-25"), scenario: Some("sse-retry"), table: false };
        assert_eq!(ConformancePlan::parse(&["client", "2025-11-25", "--scenario", "sse-retry"]).unwrap(), one);
        assert!(ConformancePlan::parse(&["--table"]).unwrap().table);
        for words in [&["--scenario"][..], &["2025-11-25", "client"], &["--table", "extension"]] {
            assert!(ConformancePlan::parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn scenario_filter_applies() {
        let turn = |scenario: &str| ScenarioRun { revision: EXTENSION_SCENARIOS, scenario: scenario.to_owned() };
        let one = ConformancePlan { scenario: Some("initialize"), ..ConformancePlan::default() };
        assert!(ConformancePlan::default().includes(&turn("initialize")) && one.includes(&turn("initialize")));
        assert!(!one.includes(&turn("tools_call")) && ConformancePlan::default().includes(&turn("auth/dpop")));
    }
}
