//! `cargo xtask bench cli`: run time of commands from start to exit, compared with a minimal client and with other
//! command-line clients.
//!
//! The commands take turns within each round and are compared within it. Each runs with a cleared environment and a
//! home of its own, and must print the expected output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::cli_table::{self, CliRounds};
use super::report_page;
use crate::peers;
use crate::run::{TaskResult, capture, cargo, parse_number, run, say, target};

/// The command that lists the configured servers.
pub const LISTING: &str = "list";
/// Number of configured servers.
const SERVERS: usize = 10;
/// Text the demo server echoes.
const TEXT: &str = "Ahoy!";

/// The measured commands, in the order of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BenchedCommand {
    Version,
    List,
    Bare,
    Call,
    McporterList,
    McporterCall,
    InspectorCall,
}

pub const EVERYBODY: [BenchedCommand; 7] = [
    BenchedCommand::Version,
    BenchedCommand::List,
    BenchedCommand::Bare,
    BenchedCommand::Call,
    BenchedCommand::McporterList,
    BenchedCommand::McporterCall,
    BenchedCommand::InspectorCall,
];

/// Amount of measurement.
pub struct CliBenchPlan {
    pub rounds: usize,
    pub command: String,
}

pub fn cli(words: &[&str]) -> TaskResult {
    let plan = CliBenchPlan::parse(words)?;
    let others = peers::install_command_lines()?;
    run(cargo().args(["build", "--profile", "dist", "--package", "wharf-cli", "--bin", "wharf"]))?;
    run(cargo().args(["build", "--profile", "dist", "--package", "wharf-peers", "--bin", "bench-cli-bare"]))?;
    let bench = CliBench { binaries: target().join("dist"), others, home: create_home()? };
    let rounds = bench.measure(&plan)?;
    report_page::write_part(&cli_table::page(&plan, &rounds))
}

impl CliBenchPlan {
    fn parse(words: &[&str]) -> TaskResult<Self> {
        let command = [&["cargo", "xtask", "bench", "cli"], words].concat().join(" ");
        let rounds = match words {
            [] => 31,
            ["--quick"] => 7,
            ["--rounds", rest @ ..] if rest.len() == 1 => parse_number("--rounds", rest.first())?,
            _ => return Err(format!("bench cli: unknown arguments {}", words.join(" ")).into()),
        };
        if rounds == 0 { Err("--rounds must be at least 1".into()) } else { Ok(Self { rounds, command }) }
    }
}

/// Creates a fresh home with ten configured servers.
fn create_home() -> TaskResult<PathBuf> {
    let home = target().join("bench/home");
    let _ = fs::remove_dir_all(&home);
    let folder = home.join(".config/wharf");
    fs::create_dir_all(&folder)?;
    let entry = |number: usize| {
        let entry = json!({ "command": "wharf", "args": ["demo-server", "--name", format!("berth-{number}")] });
        (format!("berth-{number}"), entry)
    };
    let servers: Map<String, Value> = (1..=SERVERS).map(entry).collect();
    fs::write(folder.join("config.json"), json!({ "mcpServers": servers }).to_string())?;
    Ok(home)
}

struct CliBench {
    binaries: PathBuf,
    others: PathBuf,
    home: PathBuf,
}

impl CliBench {
    fn measure(&self, plan: &CliBenchPlan) -> TaskResult<CliRounds> {
        say!("{} rounds of {} commands", plan.rounds, EVERYBODY.len());
        for who in EVERYBODY {
            // Warm-up: exclude first-time disk reads.
            self.time(who)?;
        }
        let mut rounds = CliRounds::new();
        for round in 0..plan.rounds {
            let mut times = [0.0; EVERYBODY.len()];
            // Rotate the first command, so that no command always follows the same one.
            for turn in 0..EVERYBODY.len() {
                let place = (round + turn) % EVERYBODY.len();
                times[place] = self.time(EVERYBODY[place])?;
            }
            rounds.push(times);
        }
        Ok(rounds)
    }

    /// Returns the milliseconds from the start of a command to its exit.
    fn time(&self, who: BenchedCommand) -> TaskResult<f64> {
        let mut command = self.command(who);
        let path = format!("{}:/usr/bin:/bin", self.binaries.display());
        command.env_clear().env("HOME", &self.home).env("PATH", path).current_dir(&self.home);
        let begun = Instant::now();
        let stdout = capture(&mut command)?.stdout;
        let time = begun.elapsed().as_secs_f64() * 1e3;
        let expected = expected_output(who);
        if stdout.contains(expected) { Ok(time) } else { Err(format!("{who:?} did not print {expected}").into()) }
    }

    fn command(&self, who: BenchedCommand) -> Command {
        let wharf = self.binaries.join("wharf");
        let server = format!("{} demo-server", wharf.display());
        let text = format!("text={TEXT}");
        let mut command = match who {
            BenchedCommand::Version | BenchedCommand::List | BenchedCommand::Call => Command::new(&wharf),
            BenchedCommand::Bare => Command::new(self.binaries.join("bench-cli-bare")),
            BenchedCommand::McporterList | BenchedCommand::McporterCall => self.node("mcporter/dist/cli.js"),
            BenchedCommand::InspectorCall => {
                self.node("@modelcontextprotocol/inspector/clients/launcher/build/index.js")
            }
        };
        match who {
            BenchedCommand::Version => command.arg("--version"),
            BenchedCommand::List => command.args(LISTING.split(' ')),
            BenchedCommand::Call => command.args(["call", "echo", &text, "--stdio", &server]),
            BenchedCommand::Bare => command.arg(TEXT).arg(&wharf).arg("demo-server"),
            BenchedCommand::McporterList => command.args(["config", "list", "--config", ".config/wharf/config.json"]),
            BenchedCommand::McporterCall => command.args(["call", "--stdio", &server, "echo", &text]),
            BenchedCommand::InspectorCall => command
                .arg("--cli")
                .arg(&wharf)
                .args(["demo-server", "--method", "tools/call"])
                .args(["--tool-name", "echo", "--tool-arg", &text]),
        };
        command
    }

    /// Returns a command for a script of another client with its pinned Node, or the Node on the search path if none is
    /// pinned for the platform.
    fn node(&self, script: &str) -> Command {
        let node = self.others.join(".bin/node");
        let mut command = Command::new(if node.is_file() { node.as_path() } else { Path::new("node") });
        command.arg(self.others.join(script));
        command
    }
}

/// Returns the output that a command must contain, so that a failing command is not measured as fast.
fn expected_output(who: BenchedCommand) -> &'static str {
    match who {
        BenchedCommand::Version => "wharf ",
        BenchedCommand::List | BenchedCommand::McporterList => "berth-10",
        BenchedCommand::Bare | BenchedCommand::Call | BenchedCommand::McporterCall | BenchedCommand::InspectorCall => {
            TEXT
        }
    }
}
