//! One cell of the matrix: a way to reach servers, what they send, how many of them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use wharf_testkit::flood::FloodKind;
use wharf_testkit::oracle;

use crate::process::Load;

/// The most memory above idle.
pub const MAX_PEAK: u64 = 128 << 10;
/// The most that the 99th percentile of a healthy server's calls may grow.
pub const MAX_RATIO: f64 = 2.0;

#[derive(Clone, Copy)]
pub struct Cell {
    pub form: &'static str,
    pub kind: FloodKind,
    pub count: usize,
}

/// What was measured in a cell.
pub struct Measured {
    /// KiB above idle.
    pub peak: u64,
    pub calls: usize,
    /// Microseconds.
    pub p99: u128,
    /// What the host and the flooding servers used.
    pub loads: Vec<Load>,
    /// What the failed calls of flooding servers and their lists said.
    pub failures: Vec<String>,
}

impl Measured {
    /// How many processors were used, on average.
    pub fn processors(&self) -> f64 {
        let (used, took) = self
            .loads
            .iter()
            .fold((0.0, 0.0), |(used, took), load| (used + load.used.as_secs_f64(), took + load.took.as_secs_f64()));
        used / took
    }
}

/// All cells there are.
pub fn all() -> Vec<Cell> {
    let mut cells = Vec::new();
    for form in ["stdio", "http", "sse"] {
        for kind in FloodKind::FLOODS.into_iter().filter(|kind| form == "stdio" || *kind != FloodKind::Stderr) {
            cells.extend([1, 5].map(|count| Cell { form, kind, count }));
        }
    }
    cells
}

impl Cell {
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.form, self.kind.as_str(), self.count)
    }

    /// Runs the host beside the flooding servers.
    pub fn measure(&self, seconds: u64) -> Measured {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().display().to_string();
        let servers: Vec<Remote> = match self.form {
            "stdio" => Vec::new(),
            form => (0..self.count).map(|_| Remote::start(form, self.kind, &mark)).collect(),
        };
        let urls = servers.iter().map(|server| server.url.clone()).collect();
        run_host([self.form, self.kind.as_str()], self.count, seconds, &mark, urls)
    }

    /// Runs the host alone, beside a process that uses as much processor time as the flood did at each moment, on as many
    /// threads as could run then.
    pub fn measure_beside(&self, flooded: &Measured, seconds: u64) -> Measured {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().display().to_string();
        let mut burner = own_command("burn").stdin(Stdio::piped()).env(oracle::MARKER, &mark).spawn().unwrap();
        let lines: Vec<String> = flooded.loads.iter().map(Load::line).collect();
        burner.stdin.take().unwrap().write_all(lines.join("\n").as_bytes()).unwrap();
        let measured = run_host(["stdio", "quiet"], 0, seconds, &mark, Vec::new());
        let _ = burner.kill();
        let _ = burner.wait();
        measured
    }
}

fn run_host(words: [&str; 2], count: usize, seconds: u64, mark: &str, urls: Vec<String>) -> Measured {
    let mut command = own_command("host");
    command.args(words).args([count.to_string(), seconds.to_string()]).args([mark, mark]).args(urls);
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "the host failed: {}", output.status);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |name: &str| found[name].as_u64().unwrap();
    let mut latencies: Vec<u128> =
        found["latencies"].as_array().unwrap().iter().filter_map(Value::as_u64).map(u128::from).collect();
    latencies.sort_unstable();
    let loads = found["loads"].as_array().unwrap().iter().filter_map(Value::as_str).map(Load::parse);
    let counted = found["failures"].as_object().unwrap().iter().map(|(text, count)| format!("{count} × {text}"));
    let lists = found["lists"].as_array().unwrap().iter().filter_map(|line| line.as_str().map(str::to_owned));
    Measured {
        peak: number("peak").saturating_sub(number("idle")),
        calls: latencies.len(),
        p99: latencies[latencies.len() * 99 / 100],
        loads: loads.collect(),
        failures: counted.chain(lists).collect(),
    }
}

fn own_command(word: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(word);
    command
}

/// A flooding server over HTTP; it ends when its input does.
struct Remote {
    process: Child,
    url: String,
}

impl Remote {
    fn start(form: &str, kind: FloodKind, mark: &str) -> Self {
        let mut command = own_command("flood");
        command.args([form, kind.as_str()]).env(oracle::MARKER, mark);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned() }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
