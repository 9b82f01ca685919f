//! A gateway that is killed under load leaves no process.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use wharf_peers::load::{ClientEra, ClientOptions, Endpoint, McpClient};
use wharf_testkit::oracle::marked_processes;

use crate::served::{ServedGateway, ServedHome, block_on};
use crate::{Findings, Scale};

const SERVERS: usize = 3;
const CLIENTS: usize = 8;
/// Maximum time after the kill.
const LIMIT: Duration = Duration::from_secs(10);

pub fn kills(scale: Scale) -> Findings {
    let runs = scale.runs.unwrap_or(scale.pick(20, 1000));
    let mut found = Findings::new(format!("{runs} kills, {SERVERS} servers with a child each, {CLIENTS} clients"));
    let served = ServedHome::new(SERVERS);
    let (mut left, mut slowest) = (0, Duration::ZERO);
    for run in 0..runs {
        let mut gateway = ServedGateway::start(&served);
        // Different moments: during the start of servers, and under full load.
        let before = Duration::from_millis(20 + (run as u64 * 37) % 400);
        block_on(load(gateway.endpoint.clone(), before, || gateway.kill()));
        let killed = Instant::now();
        if !served.is_left_empty(LIMIT) {
            let processes = marked_processes(&served.marker);
            left += processes.len();
            found.problems.push(format!("run {run}: {processes:?}"));
        }
        slowest = slowest.max(killed.elapsed());
    }
    found.figure(format!("{left} processes left, gone after {} ms at most", slowest.as_millis()));
    found
}

/// Calls all servers until the gateway is killed.
async fn load(endpoint: Endpoint, before: Duration, kill: impl FnOnce()) {
    let mut calling = JoinSet::new();
    for number in 0..CLIENTS {
        calling.spawn(call_until_the_end(endpoint.clone(), number % SERVERS));
    }
    tokio::time::sleep(before).await;
    kill();
    while calling.join_next().await.is_some() {}
}

async fn call_until_the_end(endpoint: Endpoint, server: usize) {
    let Ok(mut client) = McpClient::open(&endpoint, ClientOptions::new(ClientEra::Handshake)).await else { return };
    while client.call(&format!("s{server}__note"), "ahoy").await.is_ok() {}
}
