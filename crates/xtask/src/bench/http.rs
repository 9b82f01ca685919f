//! `cargo xtask bench http`: calls per second over HTTP, for this client, for other SDKs and for a bare client on the
//! same HTTP library (the limit). Also the number of connections each client opens, and the cost of a configured
//! account that the server does not require.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{
    BenchClient, BenchTransport, ThroughputPlan, http_tables, instructions, prepare, report_page, rounds,
    write_template,
};
use crate::run::{TaskResult, capture, say, target};

/// Forms of the server's responses.
pub const WAYS: [BenchTransport; 2] = [BenchTransport::Json, BenchTransport::Sse];

/// Number of sequential calls of one caller during which connections are counted.
pub const SEQUENCE: usize = 100;

/// Maximum number of connections this client may open for them.
const MAX_CONNECTIONS: u64 = 2;

pub const BARE: [&str; 2] = ["bare client, one thread", "bare client, two workers"];
const OURS: [&str; 2] = ["Wharf, one thread", "Wharf, two workers"];
const RMCP: [&str; 2] = ["rmcp 3.8, one thread", "rmcp 3.8, two workers"];

pub fn http(words: &[&str]) -> TaskResult {
    let plan = ThroughputPlan::parse("http", words)?;
    let (binaries, home) = prepare()?;
    let (field, server) = (http_clients(&binaries, &home)?, binaries.join("bench-http-echo"));
    let connections = count_connections(&field, &server)?;
    let account = measure_unused_account(&binaries.join("bench-wharf"), &server)?;
    let samples = rounds::measure(&plan, &rounds::settings(&WAYS), &field, &server)?;
    rounds::write_samples(&samples, &target().join("bench/http.jsonl"))?;
    let counts = instructions::count_instructions(&field, &server);
    let counted = http_tables::ServerCounts { connections: &connections, account: &account };
    report_page::write_part(&http_tables::page(&plan, &field, &samples, &counted, &counts))?;
    check_connections(&connections)?;
    account.check()
}

/// Returns all clients; each limit precedes the clients compared with it.
fn http_clients(binaries: &Path, home: &Path) -> TaskResult<Vec<BenchClient>> {
    let [bare, ours, rmcp] = ["bench-http-bare", "bench-wharf", "bench-rmcp"].map(|name| binaries.join(name));
    let template = write_template(&ours, BenchTransport::Json)?;
    let mut field = Vec::new();
    for (nth, flavour) in ["current", "multi"].into_iter().enumerate() {
        let rt = || ["--http".into(), "--rt".into(), flavour.into()];
        let mut limit = BenchClient::new(BARE[nth], bare.clone(), rt());
        limit.arguments.extend(["--template".into(), template.clone().into()]);
        let three =
            [limit, BenchClient::new(OURS[nth], ours.clone(), rt()), BenchClient::new(RMCP[nth], rmcp.clone(), rt())];
        field.extend(three.map(|client| if nth == 0 { client.with_instruction_count() } else { client }));
    }
    field.push(BenchClient::new("TypeScript SDK 2.4", "node".into(), [home.join("clients/ts2.mjs").into()]));
    field.push(BenchClient::new("Python SDK 2.3", home.join("py2/bin/python"), [home.join("clients/py2.py").into()]));
    Ok(field)
}

/// Connections opened by one client, by [`WAYS`].
pub struct ConnectionCount {
    pub label: &'static str,
    pub opened: [u64; WAYS.len()],
}

fn count_connections(field: &[BenchClient], server: &Path) -> TaskResult<Vec<ConnectionCount>> {
    let mut all = Vec::new();
    for client in field {
        let mut opened = [0; WAYS.len()];
        for (way, opened) in WAYS.into_iter().zip(&mut opened) {
            *opened = run_and_count(client, server, way)?;
        }
        let [json, sse] = opened;
        say!("{}: {json} connections for {SEQUENCE} calls with JSON responses, {sse} with SSE responses", client.label);
        all.push(ConnectionCount { label: client.label, opened });
    }
    Ok(all)
}

fn run_and_count(client: &BenchClient, server: &Path, way: BenchTransport) -> TaskResult<u64> {
    let mut command = Command::new(&client.program);
    command.args(&client.arguments).arg("--server").arg(server).args(["--answers", way.name()]);
    let line = capture(command.args(["--calls", &SEQUENCE.to_string()]))?.stdout;
    let figures: Value = serde_json::from_str(&line)?;
    figures["connections"].as_u64().ok_or_else(|| format!("{}: no connections in {line}", client.label).into())
}

/// Requests and times of a server that requires no login, from a client without an account and from a client with one.
pub struct UnusedAccount {
    /// Requests for connecting and [`SEQUENCE`] calls.
    pub requests: [u64; 2],
    /// Microseconds per call, in pairs of consecutive runs.
    pub times: Vec<[f64; 2]>,
}

/// Number of pairs of runs that time an unused account, and the seconds of each run.
const ACCOUNT_RUN_PAIRS: usize = 5;
const ACCOUNT_RUN_SECONDS: &str = "1";

fn measure_unused_account(ours: &Path, server: &Path) -> TaskResult<UnusedAccount> {
    let figure = |with: bool, how: [&str; 2], figure: &str| -> TaskResult<f64> {
        let mut command = Command::new(ours);
        command.arg("--http").arg("--server").arg(server).args(how).args(with.then_some("--account"));
        let line = capture(&mut command)?.stdout;
        let figures: Value = serde_json::from_str(&line)?;
        figures[figure].as_f64().ok_or_else(|| format!("no {figure} in {line}").into())
    };
    let calls = SEQUENCE.to_string();
    let requests = |with| -> TaskResult<u64> { Ok(figure(with, ["--calls", &calls], "requests")? as u64) };
    let requests = [requests(false)?, requests(true)?];
    let time = |with| figure(with, ["--secs", ACCOUNT_RUN_SECONDS], "p50_us");
    let mut times = Vec::new();
    for _ in 0..ACCOUNT_RUN_PAIRS {
        times.push([time(false)?, time(true)?]);
    }
    let [without, with] = requests;
    say!("unused account: {with} requests for {SEQUENCE} calls, {without} without an account");
    Ok(UnusedAccount { requests, times })
}

impl UnusedAccount {
    fn check(&self) -> TaskResult {
        let [without, with] = self.requests;
        match with == without {
            true => Ok(()),
            false => Err(format!("an unused account causes {with} requests instead of {without}").into()),
        }
    }
}

fn check_connections(connections: &[ConnectionCount]) -> TaskResult {
    let ours = connections.iter().filter(|client| OURS.contains(&client.label));
    let most = ours.flat_map(|client| client.opened).max().unwrap_or_default();
    if most > MAX_CONNECTIONS {
        Err(format!("Wharf opened {most} connections for {SEQUENCE} calls").into())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_requests_of_an_unused_account_fail() {
        let account = |requests| UnusedAccount { requests, times: Vec::new() };
        assert!(account([102, 102]).check().is_ok());
        assert!(account([102, 103]).check().is_err());
    }

    #[test]
    fn connection_limit_applies_to_wharf_only() {
        let connections = |label, opened| [ConnectionCount { label, opened }];
        assert!(check_connections(&connections(OURS[0], [1, 2])).is_ok());
        assert!(check_connections(&connections(OURS[1], [1, 3])).is_err());
        assert!(check_connections(&connections(RMCP[0], [100, 100])).is_ok());
    }
}
