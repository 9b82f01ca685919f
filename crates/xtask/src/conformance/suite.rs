//! The conformance suite: installation, list of scenarios, and running one scenario.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{EXTENSION_SCENARIOS, ScenarioRun};
use crate::peers::{NODE_PINS, install_node, run_if_changed};
use crate::run::{TaskResult, capture, root, start_error, target};

/// Timeout that the suite applies to the client, in milliseconds.
const CLIENT_TIMEOUT_MS: &str = "30000";

/// Timeout for the suite, in seconds; longer than the client's timeout.
const SUITE_TIMEOUT_SECS: &str = "60";

/// Script that adds a token to the suite's requests.
const AUTHORIZE_SCRIPT: &str = "authorize.mjs";

/// What the suite tests.
pub enum SuiteSubject {
    /// The conformance client, started by the suite.
    Client,
    /// A running server.
    Server { name: String, url: String, token: String },
}

/// The installed suite and the program it drives.
pub struct ConformanceSuite {
    home: PathBuf,
    node: PathBuf,
    script: PathBuf,
    logs: PathBuf,
    environment: Vec<(String, String)>,
}

impl ConformanceSuite {
    /// Installs the pinned suite and its Node below the target folder, unless already installed.
    pub fn install(environment: &[(&str, &str)]) -> TaskResult<Self> {
        let home = target().join("conformance");
        let logs = home.join("logs");
        fs::create_dir_all(&logs)?;
        let pins = NODE_PINS.map(|name| root().join("crates/conformance/node").join(name));
        run_if_changed(&home.join("node_modules/.stamp"), &pins, || install_node(&pins, &home))?;
        fs::copy(root().join("crates/conformance/node").join(AUTHORIZE_SCRIPT), home.join(AUTHORIZE_SCRIPT))?;
        let packages = home.join("node_modules");
        let node = packages.join(".bin/node");
        Ok(Self {
            // Fall back to the search path on a platform without a pinned Node.
            node: if node.is_file() { node } else { "node".into() },
            script: packages.join("@modelcontextprotocol/conformance/dist/index.js"),
            logs,
            home,
            environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        })
    }

    pub fn logs(&self) -> &PathBuf {
        &self.logs
    }

    /// Returns the folder of the suite, for files of a run.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Gives a process the variables of this run.
    pub fn add_environment(&self, command: &mut Command) {
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
    }

    /// Returns the scenarios of a revision, for `--client` or `--server`.
    pub fn scenarios(&self, side: &str, revision: &str) -> TaskResult<Vec<String>> {
        let mut command = Command::new(&self.node);
        command.arg(&self.script).args(["list", side]);
        if revision != EXTENSION_SCENARIOS {
            command.args(["--spec-version", revision]);
        }
        let scenarios = parse_scenarios(&capture(&mut command)?.stdout, revision);
        // An unparsable list must not look like an empty one.
        if scenarios.is_empty() {
            Err(format!("the suite lists no scenarios for {revision}").into())
        } else {
            Ok(scenarios)
        }
    }

    /// Runs one scenario and stores its output as a log.
    pub fn run(&self, turn: &ScenarioRun, subject: &SuiteSubject) -> TaskResult<ScenarioVerdict> {
        let mut command = self.command(turn, subject);
        let output = command.output().map_err(|error| start_error(&command, error))?;
        let log = [output.stdout, output.stderr].concat();
        let name = format!("{}{}_{}.log", subject.log_prefix(), turn.revision, turn.scenario.replace('/', "_"));
        fs::write(self.logs.join(name), &log)?;
        let log = String::from_utf8_lossy(&log).into_owned();
        Ok(ScenarioVerdict::from_log(output.status.success(), log))
    }

    fn command(&self, turn: &ScenarioRun, subject: &SuiteSubject) -> Command {
        // Ends the suite together with a client it may have left behind.
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", SUITE_TIMEOUT_SECS]).arg(&self.node);
        match subject {
            SuiteSubject::Client => {
                // The suite splits its command at spaces, which the folder name may contain.
                command.arg(&self.script).args(["client", "--command", "./wharf-conformance-client"]);
                command.current_dir(target().join("debug"));
            }
            SuiteSubject::Server { url, token, .. } => {
                command.arg("--import").arg(format!("./{AUTHORIZE_SCRIPT}")).arg(&self.script);
                command.args(["server", "--url", url]).env("WHARF_CONFORMANCE_TOKEN", token).current_dir(&self.home);
            }
        }
        command.args(["--scenario", &turn.scenario, "--timeout", CLIENT_TIMEOUT_MS]);
        if turn.revision != EXTENSION_SCENARIOS {
            command.args(["--spec-version", turn.revision]);
        }
        self.add_environment(&mut command);
        command.stdin(std::process::Stdio::null());
        command
    }
}

impl SuiteSubject {
    fn log_prefix(&self) -> String {
        match self {
            Self::Client => String::new(),
            Self::Server { name, .. } => format!("server_{name}_"),
        }
    }
}

/// The suite's verdict on one scenario.
#[derive(Debug)]
pub struct ScenarioVerdict {
    ended_well: bool,
    checks: CheckCounts,
    log: String,
}

/// Number of passed checks, and of all checks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct CheckCounts {
    passed: usize,
    made: usize,
}

impl ScenarioVerdict {
    /// Parses the suite's output. In some scenarios the suite tolerates a failing client; this does not.
    pub fn from_log(suite_ended_well: bool, log: String) -> Self {
        let client_failed = log.lines().any(|line| line.starts_with("Client exited with code "));
        Self { ended_well: suite_ended_well && !client_failed, checks: parse_checks(&log), log }
    }

    /// Reports whether suite and client succeeded and at least one check passed.
    pub fn is_passed(&self) -> bool {
        self.ended_well && self.checks.passed > 0
    }

    /// Returns the part of the log that explains a failure: the client's output and the suite's summary.
    pub fn failure_summary(&self) -> String {
        let (before, checks) = self.log.split_once("\nChecks:\n").unwrap_or(("", &self.log));
        let (_, after) = checks.split_once("\nTest Results:\n").unwrap_or(("", checks));
        format!("{}\n\n{}", before.trim(), after.trim()).trim_start().to_owned()
    }
}

/// Shows the checks, and an abnormal end.
impl fmt::Display for ScenarioVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.checks.passed, self.checks.made)?;
        if self.ended_well { Ok(()) } else { f.write_str(", abnormal exit") }
    }
}

/// Parses a list of scenarios, `  - name [revision,revision]`. The suite filters by revision itself; scenarios outside
/// of any revision are only marked.
fn parse_scenarios(text: &str, revision: &str) -> Vec<String> {
    let entries = text.lines().filter_map(|line| line.strip_prefix("  - ")?.split_once(' '));
    let wanted = entries.filter(|(_, mark)| revision != EXTENSION_SCENARIOS || *mark == "[extension]");
    wanted.map(|(name, _)| name.to_owned()).collect()
}

/// Parses the closing line, `ForwardedBytes: 5/6, 1 failed, 0 warnings`. Without it, no checks are counted.
fn parse_checks(log: &str) -> CheckCounts {
    let closing = log.lines().rev().find_map(|line| line.strip_prefix("Passed: "));
    let counts = closing.and_then(|line| line.split(',').next()?.split_once('/'));
    let counts = counts.and_then(|(passed, made)| Some((passed.parse().ok()?, made.parse().ok()?)));
    counts.map_or_else(CheckCounts::default, |(passed, made)| CheckCounts { passed, made })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_lists_are_parsed() {
        let text = "Client scenarios (test against a client):\n  - initialize [2025-06-18,2025-11-25]\n  - \
                    auth/dpop [extension]\n";
        assert_eq!(parse_scenarios(text, "2025-11-25"), ["initialize", "auth/dpop"]);
        assert_eq!(parse_scenarios(text, EXTENSION_SCENARIOS), ["auth/dpop"]);
        assert!(parse_scenarios("No such thing\n", EXTENSION_SCENARIOS).is_empty());
    }

    #[test]
    fn scenario_passes_with_checks_and_clean_exits() {
        for (log, ended_well, passed) in [
            ("Test Results:\nPassed: 5/5, 0 failed, 0 warnings\n", true, true),
            ("Passed: 5/5, 0 failed, 0 warnings\n", false, false),
            ("\nClient exited with code 1\n\nPassed: 5/5, 0 failed, 0 warnings\n", true, false),
            ("Passed: 0/0, 0 failed, 0 warnings\n\n✅ OVERALL: PASSED\n", true, false),
            ("a crash", true, false),
            ("", true, false),
        ] {
            assert_eq!(ScenarioVerdict::from_log(ended_well, log.to_owned()).is_passed(), passed, "{log}");
        }
        assert_eq!(parse_checks("Passed: 4/6, 2 failed, 0 warnings"), CheckCounts { passed: 4, made: 6 });
    }

    #[test]
    fn failure_summary_omits_the_checks() {
        for (log, expected) in [
            (
                "Stderr:\nno answer\n\nChecks:\nmany\n\nTest Results:\nPassed: 0/1\n",
                "Stderr:\nno answer\n\nPassed: 0/1",
            ),
            ("a crash\n", "a crash"),
        ] {
            assert_eq!(ScenarioVerdict::from_log(false, log.to_owned()).failure_summary(), expected);
        }
    }
}
