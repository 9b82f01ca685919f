//! `cargo xtask bench stdio`: calls per second over a pipe, for this client, for other SDKs and for a client that only
//! copies bytes (the limit). All use the same echo server. In-process calls are measured too. [`http()`] measures the
//! same over HTTP, [`cli()`] the run time of commands, [`repl()`] the latency of the REPL, [`gateway()`] calls through the
//! gateway.
//!
//! The clients take turns within each round and are compared within it, so that other load on the machine affects all
//! of them.

mod cli;
mod cli_table;
mod gateway;
mod gateway_table;
mod gateway_targets;
mod host;
mod host_table;
mod http;
mod http_tables;
mod instructions;
mod repl;
mod repl_table;
mod report_page;
mod rounds;
mod tables;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers;
use crate::run::{TaskResult, capture, cargo, on_path, parse_number, run, say, target};

pub use cli::cli;
pub use gateway::gateway;
pub use host::host;
pub use http::http;
pub use repl::repl;

const CORES: [usize; 2] = [1, 2];
const PAYLOADS: [usize; 2] = [64, 65536];
const CALLERS: [usize; 3] = [1, 16, 64];

pub fn stdio(words: &[&str]) -> TaskResult {
    let plan = ThroughputPlan::parse("stdio", words)?;
    let (binaries, home) = prepare()?;
    let field = stdio_clients(&binaries, &home)?;
    let everybody = [&field[..], &local_clients(&binaries)].concat();
    let settings = rounds::settings(&[BenchTransport::Stdio]);
    let samples = rounds::measure(&plan, &settings, &everybody, &binaries.join("bench-echo"))?;
    rounds::write_samples(&samples, &target().join("bench/stdio.jsonl"))?;
    let instructions = instructions::count_instructions(&field, &binaries.join("bench-echo"));
    let page = tables::page(&plan, &field, &samples, &instructions);
    report_page::write_part(&page)
}

/// Builds all clients and servers. Returns the folders of our binaries and of the peers.
fn prepare() -> TaskResult<(PathBuf, PathBuf)> {
    if !on_path("taskset") {
        return Err("taskset not found (needed to pin processes to cores)".into());
    }
    let home = peers::install()?;
    run(cargo().args(["build", "--profile", "dist", "--package", "wharf-peers"]))?;
    Ok((target().join("dist"), home))
}

/// Transport between client and server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BenchTransport {
    Stdio,
    /// HTTP with JSON responses.
    Json,
    /// HTTP with SSE responses.
    Sse,
}

impl BenchTransport {
    fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Json => "json",
            Self::Sse => "sse",
        }
    }
}

/// Amount of measurement.
struct ThroughputPlan {
    rounds: usize,
    seconds: f64,
    /// The command line, for the report.
    command: String,
}

impl ThroughputPlan {
    fn parse(what: &str, words: &[&str]) -> TaskResult<Self> {
        let command = [&["cargo", "xtask", "bench", what], words].concat().join(" ");
        let mut plan = Self { rounds: 7, seconds: 0.5, command };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--quick" => (plan.rounds, plan.seconds) = (3, 0.25),
                "--rounds" => plan.rounds = parse_number("--rounds", words.next())?,
                "--secs" => plan.seconds = parse_number("--secs", words.next())?,
                other => return Err(format!("bench {what}: unknown argument {other}").into()),
            }
        }
        if plan.rounds == 0 { Err("--rounds must be at least 1".into()) } else { Ok(plan) }
    }
}

/// This client with in-process servers.
const LOCAL_CLIENTS: [(&str, [&str; 4]); 4] = [
    ("closures, one thread", ["--local", "closure", "--rt", "current"]),
    ("closures, two workers", ["--local", "closure", "--rt", "multi"]),
    ("rmcp 3.8 handler, one thread", ["--local", "rmcp", "--rt", "current"]),
    ("rmcp 3.8 handler, two workers", ["--local", "rmcp", "--rt", "multi"]),
];

/// This client over stdio, with a server equivalent to the in-process ones.
const STDIO_BASELINES: [(&str, &str); 2] = [(SDK_CURRENT, "current"), (SDK_MULTI, "multi")];
const SDK_CURRENT: &str = "rmcp 3.8 server over stdio, one thread";
const SDK_MULTI: &str = "rmcp 3.8 server over stdio, two workers";

/// Rows of the table: name, measured client, and the client it is compared with.
const LOCAL_ROWS: [(&str, &str, &str); 8] = [
    ("closures : rmcp server over stdio, one thread", "closures, one thread", SDK_CURRENT),
    ("rmcp handler : rmcp server over stdio, one thread", "rmcp 3.8 handler, one thread", SDK_CURRENT),
    ("closures : byte copier over stdio, one thread", "closures, one thread", OURS_CURRENT),
    ("rmcp handler : byte copier over stdio, one thread", "rmcp 3.8 handler, one thread", OURS_CURRENT),
    ("closures : rmcp server over stdio, two workers", "closures, two workers", SDK_MULTI),
    ("rmcp handler : rmcp server over stdio, two workers", "rmcp 3.8 handler, two workers", SDK_MULTI),
    ("closures : byte copier over stdio, two workers", "closures, two workers", OURS_MULTI),
    ("rmcp handler : byte copier over stdio, two workers", "rmcp 3.8 handler, two workers", OURS_MULTI),
];

const OURS_CURRENT: &str = "Wharf, one thread";
const OURS_MULTI: &str = "Wharf, two workers";

/// A client to measure: a command that accepts the common flags.
#[derive(Clone)]
struct BenchClient {
    label: &'static str,
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Set if instructions are counted too.
    counted: bool,
    /// The server to use instead of the echo server.
    server: Option<PathBuf>,
}

impl BenchClient {
    fn new<const N: usize>(label: &'static str, program: PathBuf, arguments: [OsString; N]) -> Self {
        Self { label, program, arguments: arguments.into(), counted: false, server: None }
    }

    fn with_instruction_count(self) -> Self {
        Self { counted: true, ..self }
    }
}

/// Returns all clients; the limit comes first.
fn stdio_clients(binaries: &Path, home: &Path) -> TaskResult<Vec<BenchClient>> {
    let rt = |flavour: &str| ["--rt".into(), flavour.into()];
    let (ours, rmcp) = (binaries.join("bench-wharf"), binaries.join("bench-rmcp"));
    let mut limit = BenchClient::new("raw pipe, the limit", binaries.join("bench-raw"), []).with_instruction_count();
    let mut field = Vec::new();
    if ours.is_file() {
        limit.arguments = vec!["--template".into(), write_template(&ours, BenchTransport::Stdio)?.into()];
        field.push(BenchClient::new(OURS_CURRENT, ours.clone(), rt("current")).with_instruction_count());
        field.push(BenchClient::new(OURS_MULTI, ours, rt("multi")));
    } else {
        say!("Wharf SKIPPED: {} not found", ours.display());
    }
    field.insert(0, limit);
    field.push(BenchClient::new("rmcp 3.8, one thread", rmcp.clone(), rt("current")).with_instruction_count());
    field.push(BenchClient::new("rmcp 3.8, two workers", rmcp, rt("multi")));
    field.push(BenchClient::new("TypeScript SDK 2.4", "node".into(), [home.join("clients/ts2.mjs").into()]));
    field.push(BenchClient::new("Python SDK 2.3", home.join("py2/bin/python"), [home.join("clients/py2.py").into()]));
    Ok(field)
}

/// Returns the clients with in-process servers, and the stdio clients they are compared with.
fn local_clients(binaries: &Path) -> Vec<BenchClient> {
    let ours = binaries.join("bench-wharf");
    let inside =
        LOCAL_CLIENTS.map(|(label, arguments)| BenchClient::new(label, ours.clone(), arguments.map(Into::into)));
    let beside = STDIO_BASELINES.map(|(label, flavour)| BenchClient {
        server: Some(binaries.join("rmcp-server")),
        ..BenchClient::new(label, ours.clone(), ["--rt".into(), flavour.into()])
    });
    inside.into_iter().chain(beside).collect()
}

/// Writes the request template of this client to a file, so that the limit sends the same bytes.
fn write_template(ours: &Path, transport: BenchTransport) -> TaskResult<PathBuf> {
    let http = (transport != BenchTransport::Stdio).then_some("--http");
    let line = capture(Command::new(ours).arg("--print-template").args(http))?.stdout;
    let folder = target().join("bench");
    fs::create_dir_all(&folder)?;
    let file = folder.join(format!("template-{}.json", transport.name()));
    fs::write(&file, line)?;
    Ok(file)
}
