//! The report `evidence/conformance.md`.

use std::fmt::Write;
use std::fs;

use super::{REVISIONS, ScenarioResult};
use crate::run::{MachineDescription, TaskResult, root};

const SUITE: &str = "@modelcontextprotocol/conformance";

/// Formats the whole page.
pub fn page(played: &[ScenarioResult]) -> TaskResult<String> {
    let passed = played.iter().filter(|played| played.verdict.is_passed()).count();
    Ok(format!(
        "{}\n## Results\n\n\
         Passed checks of all checks, on {}. A dash: the suite has no such scenario.\n\n\
         {}\nScenarios: {}, passed: {passed}.\n",
        introduction(&version()?),
        MachineDescription::detect().date,
        table(played),
        played.len(),
    ))
}

fn introduction(version: &str) -> String {
    format!(
        "# Conformance\n\n\
         Wharf's client against the public conformance suite, `{SUITE}` {version}. The suite plays a server and \
         checks the messages it receives; it drives `wharf-conformance-client`, a small program in `crates/conformance` on the \
         public interface of `wharf-client`.\n\n\
         ```console\n\
         $ cargo xtask conformance                                    # every revision\n\
         $ cargo xtask conformance 2025-11-25 --scenario sse-retry    # one scenario\n\
         $ cargo xtask conformance --table                            # every revision, and this page\n\
         ```\n\n\
         `cargo xtask test` runs the same and adds it to its count.\n\n\
         - The suite and the Node it needs are pinned in `crates/conformance/node` and installed below the target \
         folder, where the logs are too: `conformance/logs`.\n\
         - Every scenario runs on its own, and passes only if suite and client both exit with 0 and at least one \
         check passed. A warning of the suite is a failure. There is no list of expected failures.\n\
         - The client negotiates by itself in every scenario: it does not read which revision the suite plays.\n\
         - `sse-retry` measures a delay and runs alone; the others run two at a time.\n\
         - In scenarios of `auth/` the client logs in as it would for a person, with the suite's page in the place of \
         the browser's; its credentials stay in memory.\n"
    )
}

/// Returns the pinned version of the suite.
fn version() -> TaskResult<String> {
    let pins = fs::read_to_string(root().join("crates/conformance/node/package.json"))?;
    let pins: serde_json::Value = serde_json::from_str(&pins)?;
    let version = pins["dependencies"][SUITE].as_str();
    Ok(version.ok_or("the suite is not in crates/conformance/node/package.json")?.to_owned())
}

fn table(played: &[ScenarioResult]) -> String {
    let mut table = String::new();
    row(&mut table, "scenario", &REVISIONS.map(str::to_owned));
    row(&mut table, "---", &REVISIONS.map(|_| "---".to_owned()));
    for scenario in scenarios(played) {
        row(&mut table, scenario, &REVISIONS.map(|revision| cell(played, scenario, revision)));
    }
    table
}

/// Returns each scenario once, in the order of its first run.
fn scenarios(played: &[ScenarioResult]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for ScenarioResult { turn, .. } in played {
        if !names.contains(&turn.scenario.as_str()) {
            names.push(&turn.scenario);
        }
    }
    names
}

fn cell(played: &[ScenarioResult], scenario: &str, revision: &str) -> String {
    let found = played.iter().find(|played| played.turn.scenario == scenario && played.turn.revision == revision);
    match found {
        Some(ScenarioResult { verdict, .. }) if verdict.is_passed() => format!("✓ {verdict}"),
        Some(ScenarioResult { verdict, .. }) => format!("✗ {verdict}"),
        None => "–".to_owned(),
    }
}

fn row(page: &mut String, first: &str, cells: &[String]) {
    let _ = writeln!(page, "| {first} | {} |", cells.join(" | "));
}

#[cfg(test)]
mod tests {
    use super::super::{ScenarioRun, ScenarioVerdict};
    use super::*;

    #[test]
    fn scenario_has_one_row() {
        let played = |revision, scenario: &str, log: &str| ScenarioResult {
            turn: ScenarioRun { revision, scenario: scenario.to_owned() },
            verdict: ScenarioVerdict::from_log(true, log.to_owned()),
        };
        let table = table(&[
            played("2026-07-28", "tools_call", "Passed: 2/2, 0 failed, 0 warnings"),
            played("2025-11-25", "sse-retry", "Passed: 0/0, 0 failed, 0 warnings"),
            played("2025-06-18", "tools_call", "Passed: 1/1, 0 failed, 0 warnings"),
        ]);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(rows, ["| tools_call | ✓ 2/2 | – | ✓ 1/1 | – | – |", "| sse-retry | – | ✗ 0/0 | – | – | – |"]);
    }
}
