//! The report `evidence/conformance.md`.

use std::fmt::Write;
use std::fs;

use super::server::{self, BACKENDS, BackendResults};
use super::{REVISIONS, ScenarioResult};
use crate::run::{MachineDescription, TaskResult, root};

const SUITE: &str = "@modelcontextprotocol/conformance";

/// Begins the second part of the page.
const GATEWAY_TITLE: &str = "# Through the gateway\n";

/// A part of the page. Each is written by its own command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PagePart {
    Client,
    Gateway,
}

/// Writes one part of the page and keeps the other.
pub fn write_part(part: PagePart, text: &str) -> TaskResult {
    let path = root().join("evidence/conformance.md");
    let before = fs::read_to_string(&path).unwrap_or_default();
    fs::write(path, replace_part(&before, part, text))?;
    Ok(())
}

fn replace_part(page: &str, part: PagePart, text: &str) -> String {
    let (client, gateway) = page.split_at(page.find(GATEWAY_TITLE).unwrap_or(page.len()));
    let (client, gateway) = match part {
        PagePart::Client => (text, gateway),
        PagePart::Gateway => (client, text),
    };
    let parts = [client.trim_end(), gateway.trim_end()].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n\n") + "\n"
}

/// Formats the part about the gateway.
pub fn gateway_page(results: &[BackendResults]) -> TaskResult<String> {
    let played = || results.iter().flat_map(|results| &results.played);
    let passed = played().filter(|played| played.verdict.is_passed()).count();
    Ok(format!(
        "{GATEWAY_TITLE}\n\
         The server half of the suite, {}, against `wharf serve --http --names plain` with `wharf-conformance-server` \
         behind it: over stdio and over HTTP, in either era. The suite sends the gateway's token with every request.\n\n\
         ```console\n\
         $ cargo xtask conformance server                                        # both revisions, all four servers\n\
         $ cargo xtask conformance server 2025-11-25 --behind http --era stateless\n\
         $ cargo xtask conformance server --table                                # and this part of the page\n\
         ```\n\n\
         Passed checks of all checks, on {}, counted as above. A dash: the revision has no such scenario.\n\n\
         {}\nScenarios: {}, passed: {passed}.\n",
        version()?,
        MachineDescription::detect().date,
        gateway_table(results),
        played().count(),
    ))
}

fn gateway_table(results: &[BackendResults]) -> String {
    let columns = server::REVISIONS.iter().flat_map(|revision| BACKENDS.map(|backend| (*revision, backend)));
    let columns: Vec<_> = columns.collect();
    let titles = columns.iter().map(|(revision, backend)| format!("{revision}, {} {}", backend.transport, backend.era));
    let mut table = String::new();
    row(&mut table, "scenario", &titles.collect::<Vec<_>>());
    row(&mut table, "---", &columns.iter().map(|_| "---".to_owned()).collect::<Vec<_>>());
    for scenario in scenarios(results.iter().flat_map(|results| &results.played)) {
        let cells = columns.iter().map(|(revision, backend)| {
            let found = results.iter().find(|results| results.backend == *backend);
            found.map_or_else(|| "–".to_owned(), |results| cell(&results.played, scenario, revision))
        });
        row(&mut table, scenario, &cells.collect::<Vec<_>>());
    }
    table
}

/// Formats the part about the client.
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
fn scenarios<'a>(played: impl IntoIterator<Item = &'a ScenarioResult>) -> Vec<&'a str> {
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
    fn part_of_the_page_is_replaced_and_the_other_kept() {
        let first = replace_part("", PagePart::Client, "# Conformance\n\nold\n");
        let both = replace_part(&first, PagePart::Gateway, "# Through the gateway\n\none\n");
        assert_eq!(both, "# Conformance\n\nold\n\n# Through the gateway\n\none\n");
        let newer = replace_part(&both, PagePart::Client, "# Conformance\n\nnew\n");
        assert_eq!(newer, "# Conformance\n\nnew\n\n# Through the gateway\n\none\n");
        let last = replace_part(&newer, PagePart::Gateway, "# Through the gateway\n\ntwo\n");
        assert_eq!(last, "# Conformance\n\nnew\n\n# Through the gateway\n\ntwo\n");
    }

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
