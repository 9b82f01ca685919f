//! `cargo xtask bench repl`: time to the prompt, with no server and with twenty of all kinds, key-to-echo latency next
//! to a silent and to a flooding server, and time to the first request to a model next to a broken and a slow server.
//!
//! The two cases of a pair take turns and are compared round by round. Each runs with a home of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use super::{repl_table, report_page};
use crate::run::{TaskResult, capture, cargo, parse_number, run, say, target};

/// Number of servers in the mixed set.
pub const CROWD: usize = 20;

/// Keys per turn; there are five turns for each case.
const KEYS_PER_TURN: usize = 50;
const TURNS: usize = 5;

/// Ways to send a message to the model.
pub const SURFACES: [&str; 3] = ["run", "repl", "pipe"];

/// Amount of measurement.
pub struct ReplBenchPlan {
    pub rounds: usize,
    pub command: String,
}

/// Startup times, in milliseconds.
pub struct StartupTimes {
    pub prompt: f64,
    /// Time until the first key typed at the prompt is echoed.
    pub key: f64,
}

/// All measurements; the first of each pair is the quiet case.
#[derive(Default)]
pub struct ReplMeasurements {
    pub openings: Vec<(StartupTimes, StartupTimes)>,
    /// Microseconds from each key to its echo.
    pub keys: (Vec<f64>, Vec<f64>),
    /// Notifications per second during each flooded turn.
    pub flood: Vec<f64>,
    /// Milliseconds to the first request for each of [`SURFACES`]: with one server, and with a broken and a slow one.
    pub requests: [Vec<(f64, f64)>; SURFACES.len()],
}

pub fn repl(words: &[&str]) -> TaskResult {
    let plan = ReplBenchPlan::parse(words)?;
    run(cargo().args(["build", "--profile", "dist", "--package", "wharf-cli", "--bin", "wharf"]))?;
    run(cargo().args(["build", "--profile", "dist", "--package", "wharf-testkit", "--bin", "typist"]))?;
    let bench = ReplBench { binaries: target().join("dist"), homes: target().join("bench/repl") };
    let _ = fs::remove_dir_all(&bench.homes);
    let measured = bench.measure(&plan)?;
    report_page::write_part(&repl_table::page(&plan, &measured))
}

impl ReplBenchPlan {
    fn parse(words: &[&str]) -> TaskResult<Self> {
        let command = [&["cargo", "xtask", "bench", "repl"], words].concat().join(" ");
        let rounds = match words {
            [] => 31,
            ["--quick"] => 5,
            ["--rounds", rest @ ..] if rest.len() == 1 => parse_number("--rounds", rest.first())?,
            _ => return Err(format!("bench repl: unknown arguments {}", words.join(" ")).into()),
        };
        if rounds == 0 { Err("--rounds must be at least 1".into()) } else { Ok(Self { rounds, command }) }
    }
}

struct ReplBench {
    binaries: PathBuf,
    homes: PathBuf,
}

impl ReplBench {
    fn measure(&self, plan: &ReplBenchPlan) -> TaskResult<ReplMeasurements> {
        let empty = self.create_home("empty", Map::new())?;
        let crowd = self.create_home("crowd", self.mixed_servers())?;
        let [calm, flooded] = ["calm", "flooding"].map(|manner| self.create_home(manner, self.talking_server(manner)));
        let (calm, flooded) = (calm?, flooded?);
        // Warm-up: exclude first-time disk reads.
        self.measure_startup(&empty)?;
        let mut measured = ReplMeasurements::default();
        say!("{} rounds of two prompts", plan.rounds);
        for _ in 0..plan.rounds {
            measured.openings.push((self.measure_startup(&empty)?, self.measure_startup(&crowd)?));
        }
        say!("{} keys, quiet and in a flood", KEYS_PER_TURN * TURNS);
        for _ in 0..TURNS {
            measured.keys.0.extend(self.measure_keys(&calm)?.0);
            let (times, said) = self.measure_keys(&flooded)?;
            measured.keys.1.extend(times);
            measured.flood.push(said);
        }
        say!("{} rounds of first requests", plan.rounds);
        let [good, mixed] =
            [("good", false), ("mixed", true)].map(|(name, mixed)| self.create_home(name, self.request_servers(mixed)));
        let (good, mixed) = (good?, mixed?);
        for (surface, times) in SURFACES.iter().zip(&mut measured.requests) {
            for _ in 0..plan.rounds {
                times.push((self.measure_request(surface, &good)?, self.measure_request(surface, &mixed)?));
            }
        }
        Ok(measured)
    }

    /// Creates a home with these servers configured.
    fn create_home(&self, name: &str, servers: Map<String, Value>) -> TaskResult<PathBuf> {
        let home = self.homes.join(name);
        let folder = home.join(".config/wharf");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("config.json"), json!({ "mcpServers": servers }).to_string())?;
        Ok(home)
    }

    /// Returns a mix of servers: healthy ones, and some of each kind of failure.
    fn mixed_servers(&self) -> Map<String, Value> {
        let wharf = self.binaries.join("wharf");
        let slow = format!("sleep 2; exec '{}' demo-server", wharf.display());
        let kinds = [
            json!({ "command": wharf, "args": ["demo-server"] }),
            json!({ "command": "/bin/sh", "args": ["-c", slow] }),
            json!({ "command": "/bin/sh", "args": ["-c", "cat > /dev/null"] }),
            json!({ "command": "/bin/sh", "args": ["-c", "echo going down >&2; exit 3"] }),
            json!({ "command": "/nowhere/at/all" }),
        ];
        (0..CROWD).map(|number| (format!("berth-{number}"), kinds[number % kinds.len()].clone())).collect()
    }

    fn talking_server(&self, manner: &str) -> Map<String, Value> {
        let tally = counter_file(&self.homes.join(manner));
        let entry = json!({ "command": self.binaries.join("typist"), "args": ["serve", manner, tally] });
        Map::from_iter([("talker".to_owned(), entry)])
    }

    /// Returns a server that responds, alone or with one that exits and one that responds after twenty seconds.
    fn request_servers(&self, mixed: bool) -> Map<String, Value> {
        let wharf = self.binaries.join("wharf");
        let slow = format!("sleep 20; exec '{}' demo-server", wharf.display());
        let servers = [
            ("good", json!({ "command": wharf, "args": ["demo-server"] })),
            ("broken", json!({ "command": "/bin/sh", "args": ["-c", "exit 3"] })),
            ("slow", json!({ "command": "/bin/sh", "args": ["-c", slow] })),
        ];
        let count = if mixed { servers.len() } else { 1 };
        servers.into_iter().take(count).map(|(name, entry)| (name.to_owned(), entry)).collect()
    }

    fn measure_request(&self, surface: &str, home: &Path) -> TaskResult<f64> {
        read_figure(&self.run_typist(&["request", surface], home, &[])?, "request_ms")
    }

    fn measure_startup(&self, home: &Path) -> TaskResult<StartupTimes> {
        let told = self.run_typist(&["prompt"], home, &[])?;
        Ok(StartupTimes { prompt: read_figure(&told, "prompt_ms")?, key: read_figure(&told, "key_ms")? })
    }

    /// Returns the latency of each key, and the server's notifications per second meanwhile.
    fn measure_keys(&self, home: &Path) -> TaskResult<(Vec<f64>, f64)> {
        let tally = counter_file(home).display().to_string();
        let told = self.run_typist(&["keys"], home, &[&KEYS_PER_TURN.to_string(), &tally])?;
        let times = told["keys_us"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        Ok((times, read_figure(&told, "said_per_second")?))
    }

    fn run_typist(&self, before: &[&str], home: &Path, after: &[&str]) -> TaskResult<Value> {
        let mut command = Command::new(self.binaries.join("typist"));
        command.args(before).arg(self.binaries.join("wharf")).arg(home).args(after);
        Ok(serde_json::from_str(&capture(&mut command)?.stdout)?)
    }
}

/// Returns the file in which a server counts its notifications.
fn counter_file(home: &Path) -> PathBuf {
    home.join("tally")
}

fn read_figure(told: &Value, name: &str) -> TaskResult<f64> {
    told[name].as_f64().ok_or_else(|| format!("no {name} in {told}").into())
}
