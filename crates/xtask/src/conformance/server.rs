//! The server half of the suite, against `wharf serve` with a fixture server behind it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::json;

use super::page::{self, PagePart};
use super::suite::{ConformanceSuite, SuiteSubject};
use super::{ScenarioResult, ScenarioRun, run_turns, summarize};
use crate::run::{TaskResult, cargo, run, say, start_error, target};
use crate::test::TestCounts;

/// Revisions with scenarios for servers.
pub const REVISIONS: [&str; 2] = ["2026-07-28", "2025-11-25"];

/// A scenario that changes lists, which would disturb others.
const ALONE_SCENARIO: &str = "server-stateless";

/// The transport and the era of the server behind the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backend {
    pub transport: &'static str,
    pub era: &'static str,
}

/// All servers behind the gateway.
pub const BACKENDS: [Backend; 4] = [
    Backend { transport: "stdio", era: "stateless" },
    Backend { transport: "stdio", era: "handshake" },
    Backend { transport: "http", era: "stateless" },
    Backend { transport: "http", era: "handshake" },
];

/// The results with one server behind the gateway.
pub struct BackendResults {
    pub backend: Backend,
    pub played: Vec<ScenarioResult>,
}

/// The selected scenarios and servers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerPlan {
    revision: Option<&'static str>,
    scenario: Option<String>,
    transport: Option<String>,
    era: Option<String>,
    /// Build profile of the programs. `None` for debug.
    profile: Option<String>,
    /// Uses the programs as they are.
    is_built: bool,
    /// Writes the results to the page.
    has_table: bool,
}

impl ServerPlan {
    pub fn parse(words: &[&str]) -> TaskResult<Self> {
        let mut plan = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().map(|word| (*word).to_owned()).ok_or(format!("{word} needs a value"));
            match *word {
                "--scenario" => plan.scenario = Some(value()?),
                "--behind" => plan.transport = Some(value()?),
                "--era" => plan.era = Some(value()?),
                "--profile" => plan.profile = Some(value()?),
                "--built" => plan.is_built = true,
                "--table" => plan.has_table = true,
                word => {
                    let known = REVISIONS.into_iter().find(|revision| *revision == word);
                    let unknown = || format!("conformance server: expected {}, not {word}", REVISIONS.join(" or "));
                    plan.revision = Some(known.ok_or_else(unknown)?);
                }
            }
        }
        if plan.backends().next().is_none() {
            return Err("--behind is stdio or http, --era handshake or stateless".into());
        }
        if plan.has_table && (plan.revision.is_some() || plan.scenario.is_some() || plan.backends().count() < 4) {
            return Err("--table needs both revisions and all servers".into());
        }
        Ok(plan)
    }

    fn backends(&self) -> impl Iterator<Item = Backend> {
        let fits = |wanted: &Option<String>, word: &str| wanted.as_ref().is_none_or(|wanted| wanted == word);
        BACKENDS
            .into_iter()
            .filter(move |backend| fits(&self.transport, backend.transport) && fits(&self.era, backend.era))
    }

    /// Returns the folder of the programs.
    fn binaries(&self) -> PathBuf {
        target().join(self.profile.as_deref().unwrap_or("debug"))
    }
}

/// Runs the command with its arguments.
pub fn server_conformance(words: &[&str]) -> TaskResult {
    let plan = ServerPlan::parse(words)?;
    if !plan.is_built {
        let mut build = cargo();
        build.args(["build", "--package", "wharf-conformance", "--package", "wharf-cli"]);
        run(build.args(plan.profile.as_ref().map(|profile| format!("--profile={profile}"))))?;
    }
    let results = run_plan(&plan, &ConformanceSuite::install(&[])?)?;
    let mut tally = TestCounts::default();
    for BackendResults { backend, played } in &results {
        let counts = summarize(played);
        say!("behind {} {}: {} passed, {} failed", backend.transport, backend.era, counts.passed, counts.failed);
        tally += counts;
    }
    if plan.has_table {
        page::write_part(PagePart::Gateway, &page::gateway_page(&results)?)?;
        say!("wrote evidence/conformance.md");
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.failed == 0 && tally.passed > 0 { Ok(()) } else { Err("conformance scenarios failed".into()) }
}

/// Runs one revision with a server of its own era and with one of the other, as part of `cargo xtask test`. The programs
/// must be built already.
pub fn run_cases(environment: &[(&str, &str)]) -> TaskResult<TestCounts> {
    let (mut counts, suite) = (TestCounts::default(), ConformanceSuite::install(environment)?);
    for [transport, era] in [["stdio", "stateless"], ["http", "handshake"]] {
        let plan = ServerPlan::parse(&[REVISIONS[0], "--behind", transport, "--era", era])?;
        for results in run_plan(&plan, &suite)? {
            counts += summarize(&results.played);
        }
    }
    Ok(counts)
}

/// Runs everything that the plan selects.
pub fn run_plan(plan: &ServerPlan, suite: &ConformanceSuite) -> TaskResult<Vec<BackendResults>> {
    let mut results = Vec::new();
    for backend in plan.backends() {
        say!("behind the gateway: a server on {}, era {}", backend.transport, backend.era);
        let gateway = RunningGateway::start(backend, &plan.binaries(), suite)?;
        results.push(BackendResults { backend, played: run_backend(plan, &gateway, suite)? });
    }
    Ok(results)
}

fn run_backend(
    plan: &ServerPlan,
    gateway: &RunningGateway,
    suite: &ConformanceSuite,
) -> TaskResult<Vec<ScenarioResult>> {
    let mut turns = Vec::new();
    for revision in REVISIONS.into_iter().filter(|revision| plan.revision.is_none_or(|wanted| wanted == *revision)) {
        let scenarios = suite.scenarios("--server", revision)?.into_iter();
        let is_wanted = |scenario: &String| plan.scenario.as_ref().is_none_or(|wanted| wanted == scenario);
        turns.extend(scenarios.filter(is_wanted).map(|scenario| ScenarioRun { revision, scenario }));
    }
    run_turns(&turns, ALONE_SCENARIO, |turn| suite.run(turn, &gateway.subject))
}

/// A gateway and the server behind it. Both end when it is dropped.
struct RunningGateway {
    subject: SuiteSubject,
    _processes: Vec<ProcessGuard>,
}

impl RunningGateway {
    fn start(backend: Backend, binaries: &Path, suite: &ConformanceSuite) -> TaskResult<Self> {
        let home = suite.home().join(format!("gateway-{}-{}", backend.transport, backend.era));
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(home.join(".config/wharf"))?;
        let fixture = binaries.join("wharf-conformance-server");
        let mut processes = Vec::new();
        let entry = if backend.transport == "http" {
            let mut command = Command::new(&fixture);
            command.args(["--era", backend.era, "--http", "127.0.0.1:0"]).stdout(Stdio::piped());
            let mut process = ProcessGuard::spawn(&mut command, suite)?;
            let lines = process.0.stdout.take().ok_or("no stdout")?;
            processes.push(process);
            json!({"url": announced(&wait_for_lines(lines, 1)?, "listening on ")?})
        } else {
            json!({"command": fixture, "args": ["--era", backend.era]})
        };
        let allow = json!([{"tool": "mcp__*", "action": "allow"}]);
        let config = json!({"mcpServers": {"fixture": entry}, "permissions": allow});
        fs::write(home.join(".config/wharf/config.json"), config.to_string())?;
        let mut command = Command::new(binaries.join("wharf"));
        command.args(["serve", "--names", "plain", "--http", "127.0.0.1:0"]).stderr(Stdio::piped());
        command.env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin").current_dir(&home);
        let mut process = ProcessGuard::spawn(&mut command, suite)?;
        let lines = wait_for_lines(process.0.stderr.take().ok_or("no stderr")?, 2)?;
        processes.push(process);
        let token = fs::read_to_string(announced(&lines, "the token is in ")?)?.trim().to_owned();
        let name = format!("{}_{}", backend.transport, backend.era);
        Ok(Self {
            subject: SuiteSubject::Server { name, url: announced(&lines, "listening on ")?, token },
            _processes: processes,
        })
    }
}

/// Returns what follows `mark` in the lines.
fn announced(lines: &[String], mark: &str) -> TaskResult<String> {
    let found = lines.iter().find_map(|line| line.split_once(mark));
    found.map(|(_, rest)| rest.trim().to_owned()).ok_or_else(|| format!("no `{mark}` in {lines:?}").into())
}

/// Reads the first lines of a process. The rest is read and dropped, so that it never blocks.
fn wait_for_lines(output: impl Read + Send + 'static, count: usize) -> TaskResult<Vec<String>> {
    let mut output = BufReader::new(output);
    let mut lines = Vec::new();
    for _ in 0..count {
        let mut line = String::new();
        output.read_line(&mut line)?;
        lines.push(line);
    }
    thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    Ok(lines)
}

/// A process that is killed on drop.
struct ProcessGuard(Child);

impl ProcessGuard {
    fn spawn(command: &mut Command, suite: &ConformanceSuite) -> TaskResult<Self> {
        suite.add_environment(command);
        let child = command.stdin(Stdio::null()).spawn().map_err(|error| start_error(command, error))?;
        Ok(Self(child))
    }
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_selects_servers_and_scenarios() {
        assert_eq!(ServerPlan::parse(&[]).unwrap().backends().count(), 4);
        let one = ServerPlan::parse(&["2025-11-25", "--behind", "http", "--era", "handshake"]).unwrap();
        assert_eq!(one.revision, Some("2025-11-25"));
        assert_eq!(one.backends().collect::<Vec<_>>(), [BACKENDS[3]]);
        let partial = &["2025-11-25", "--table"];
        for words in [&["2024-11-05"][..], &["--era"], &["--era", "old"], &["--behind", "sse"], partial] {
            assert!(ServerPlan::parse(words).is_err(), "{words:?}");
        }
    }
}
