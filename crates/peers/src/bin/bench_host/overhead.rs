//! Cost of a call through the host, compared with the same call on its connection.

use std::hint::black_box;
use std::time::Instant;

use serde_json::json;
use wharf::{CallOptions, Connection, Host, RawJson};
use wharf_peers::{
    InlineEcho, ServerKind, allow_rule, good_tool, host_builder, nanoseconds, server_entry, server_name,
    small_arguments, wait_until_answered,
};

use crate::{BenchFigures, HostBenchOptions, percentile_ms};

/// Consecutive calls of one kind before the other kind takes its turn.
const CALLS_PER_TURN: usize = 200;

/// Measures the medians of both kinds, which alternate on the same connection.
pub async fn measure(options: HostBenchOptions) -> BenchFigures {
    let host = open(&options).await;
    wait_until_answered(&host, 1).await;
    let connection = host.connection(server_name(ServerKind::Good, 0).as_str()).unwrap();
    let arguments = small_arguments();
    let (mut through, mut direct, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    run_turns(&host, &connection, &arguments).await;
    let end = Instant::now() + options.time;
    while Instant::now() < end {
        let (mut by_host, mut by_connection) = run_turns(&host, &connection, &arguments).await;
        let difference = percentile_ms(&mut by_host, 50) - percentile_ms(&mut by_connection, 50);
        differences.push((difference * 1e6) as i64);
        through.extend(by_host);
        direct.extend(by_connection);
    }
    differences.sort_unstable();
    let figures = json!({
        "over": if options.local { "in the process" } else { "stdio" },
        "calls": through.len(),
        "host_p50_us": percentile_ms(&mut through, 50) * 1e3, "connection_p50_us": percentile_ms(&mut direct, 50) * 1e3,
        "difference_p50_us": differences[differences.len() / 2] as f64 / 1e3,
        "host_p99_us": percentile_ms(&mut through, 99) * 1e3, "connection_p99_us": percentile_ms(&mut direct, 99) * 1e3,
    });
    host.close().await;
    figures
}

async fn open(options: &HostBenchOptions) -> Host {
    if options.local {
        let name = server_name(ServerKind::Good, 0);
        let rules = [allow_rule(&name, "echo")];
        return Host::builder().rules(rules).local(name, || InlineEcho).start().await.unwrap();
    }
    host_builder(vec![server_entry(&options.server, ServerKind::Good, 0, None)]).start().await.unwrap()
}

/// Runs one turn of each kind. Returns the times in nanoseconds: through the host, and on the connection.
async fn run_turns(host: &Host, connection: &Connection, arguments: &RawJson) -> (Vec<u64>, Vec<u64>) {
    let tool = good_tool(0, "echo");
    let (mut through, mut direct) = (Vec::with_capacity(CALLS_PER_TURN), Vec::with_capacity(CALLS_PER_TURN));
    for _ in 0..CALLS_PER_TURN {
        let begun = Instant::now();
        black_box(host.call(&tool, arguments, CallOptions::default()).await.unwrap());
        through.push(nanoseconds(begun.elapsed()));
    }
    for _ in 0..CALLS_PER_TURN {
        let begun = Instant::now();
        let options = wharf_client::RequestOptions::default();
        black_box(connection.call_tool_raw("echo", arguments, options).await.unwrap());
        direct.push(nanoseconds(begun.elapsed()));
    }
    (through, direct)
}
