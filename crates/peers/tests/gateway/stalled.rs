//! Clients that do not read: what they cost, and what they cost others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use wharf_peers::load::{ClientEra, ClientOptions, Endpoint, HttpConnection, McpClient};

use crate::served::{ServedGateway, ServedHome, block_on};
use crate::{Findings, Scale};

const READERS: usize = 16;
/// Size of the response that is not read: more than the kernel takes for a client that reads nothing.
const UNREAD_BYTES: usize = 900_000;
/// Maximum memory of the gateway for one stalled reader.
const MAX_KIB_EACH: u64 = 1024;
/// Maximum ratio of the others' p99 to that without stalled readers.
const MAX_RATIO: f64 = 1.2;

pub fn readers(scale: Scale) -> Findings {
    let (stalled, rounds) = (scale.pick(40, 500), scale.pick(1, 5));
    let mut found = Findings::new(format!("{stalled} stalled readers, {READERS} others"));
    let (mut without, mut with, mut kib) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        let served = ServedHome::new(2);
        let gateway = ServedGateway::start(&served);
        block_on(async {
            let time = Duration::from_millis(if scale.is_full { 3000 } else { 500 });
            // The pools of the runtime and of the allocator grow first.
            p99(&gateway.endpoint, time / 4).await;
            without.push(p99(&gateway.endpoint, time).await);
            let before = gateway.resident_kib();
            let stalling = stall(&gateway.endpoint, stalled).await;
            with.push(p99(&gateway.endpoint, time).await);
            kib = kib.max(gateway.resident_kib().saturating_sub(before) / stalled as u64);
            drop(stalling);
        });
        gateway.terminate();
    }
    // The load of the machine only ever adds.
    let best = |times: &[f64]| times.iter().copied().fold(f64::MAX, f64::min);
    let ratio = best(&with) / best(&without);
    found.figure(format!("{kib} KiB each, others' p99 {ratio:.2}x ({:.0} to {:.0} us)", best(&without), best(&with)));
    found.require(kib <= MAX_KIB_EACH, || format!("{kib} KiB each"));
    // Speed is judged where it is measured long enough.
    found.require(!scale.is_full || ratio <= MAX_RATIO, || format!("others' p99 is {ratio:.2}x"));
    found
}

/// Opens clients that ask for a large response and do not read it.
async fn stall(endpoint: &Endpoint, count: usize) -> Vec<McpClient> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let connection = HttpConnection::open_narrow(endpoint.address).await.unwrap();
        let options = ClientOptions::new(ClientEra::Handshake);
        let mut client = McpClient::over(connection, endpoint, options).await.unwrap();
        client.call_and_stall("s1__large", &UNREAD_BYTES.to_string()).await.unwrap();
        clients.push(client);
    }
    clients
}

/// Returns the 99th percentile of the others' calls in microseconds.
async fn p99(endpoint: &Endpoint, time: Duration) -> f64 {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        readers.spawn(read(endpoint.clone(), Arc::clone(&is_over)));
    }
    tokio::time::sleep(time).await;
    is_over.store(true, Ordering::Relaxed);
    let mut times = readers.join_all().await.concat();
    times.sort_unstable();
    times[(times.len() - 1) * 99 / 100].as_secs_f64() * 1e6
}

async fn read(endpoint: Endpoint, is_over: Arc<AtomicBool>) -> Vec<Duration> {
    let mut client = McpClient::open(&endpoint, ClientOptions::new(ClientEra::Handshake)).await.unwrap();
    let mut times = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answer = client.call("s0__note", "ahoy").await.unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "ahoy", "{answer}");
        times.push(began.elapsed());
    }
    times
}
