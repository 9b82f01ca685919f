//! Calls of many clients on one server, and the processor time that other processes use for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use wharf_peers::load::{ClientEra, ClientOptions, Endpoint, McpClient, ProcessUse, process_tree, process_use};

/// Flags: `--url URL --tool NAME --pid PID [--token T] [--stateless] [--clients N] [--payload BYTES] [--secs S]
/// [--except TEXT]`. Prints a line of JSON.
pub fn run(words: &[String]) {
    let number = |flag: &str, usual: f64| crate::value(words, flag).map_or(usual, |text| text.parse().unwrap());
    let mut endpoint = Endpoint::parse(crate::value(words, "--url").expect("--url")).unwrap();
    endpoint.token = crate::value(words, "--token").map(str::to_owned);
    let is_stateless = words.iter().any(|word| word == "--stateless");
    let plan = LoadPlan {
        endpoint,
        era: if is_stateless { ClientEra::Stateless } else { ClientEra::Handshake },
        tool: crate::value(words, "--tool").unwrap_or("echo").to_owned(),
        clients: number("--clients", 1.0) as usize,
        payload: number("--payload", 64.0) as usize,
        time: Duration::from_secs_f64(number("--secs", 1.0)),
        root: number("--pid", 0.0) as u32,
        except: crate::value(words, "--except").unwrap_or_default().to_owned(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("{}", runtime.block_on(plan.measure()));
}

struct LoadPlan {
    endpoint: Endpoint,
    era: ClientEra,
    tool: String,
    clients: usize,
    payload: usize,
    time: Duration,
    /// The process whose use is measured, with its descendants.
    root: u32,
    /// Part of the command line of descendants that do not count.
    except: String,
}

impl LoadPlan {
    async fn measure(self) -> String {
        let plan = Arc::new(self);
        let (begin, end) = (Arc::new(Barrier::new(plan.clients + 1)), Arc::new(AtomicBool::new(false)));
        let mut clients = JoinSet::new();
        for _ in 0..plan.clients {
            clients.spawn(run_client(Arc::clone(&plan), Arc::clone(&begin), Arc::clone(&end)));
        }
        // All have made one call then, so sessions and processes exist.
        tokio::select! {
            _ = begin.wait() => {}
            Some(ended) = clients.join_next() => panic!("a client ended before the measurement: {:?}", ended.err()),
        }
        let processes = process_tree(plan.root, &plan.except);
        let (before, began) = (process_use(&processes), Instant::now());
        tokio::time::sleep(plan.time).await;
        end.store(true, Ordering::Relaxed);
        let (after, took) = (process_use(&processes), began.elapsed());
        // Calls that end later are not counted: a slow server would be measured for longer than others.
        let times: Vec<Vec<(Instant, u64)>> = clients.join_all().await;
        let finished = times.into_iter().flatten().filter(|(at, _)| *at <= began + took);
        let mut latencies: Vec<u64> = finished.map(|(_, latency)| latency).collect();
        latencies.sort_unstable();
        let spent = ProcessUse { processor: after.processor.saturating_sub(before.processor), ..after };
        plan.report(&latencies, took, spent, processes.len())
    }

    fn report(&self, latencies: &[u64], took: Duration, spent: ProcessUse, processes: usize) -> String {
        let calls = latencies.len();
        let percentile = |percent: usize| match latencies.get(calls.saturating_sub(1) * percent / 100) {
            Some(nanoseconds) => *nanoseconds as f64 / 1000.0,
            None => 0.0,
        };
        json!({
            "n": calls,
            "rps": calls as f64 / took.as_secs_f64(),
            "p50_us": percentile(50),
            "p99_us": percentile(99),
            "cpu_us_per_call": spent.processor.as_secs_f64() * 1e6 / calls.max(1) as f64,
            "rss_kib": spent.resident_kib,
            "processes": processes,
        })
        .to_string()
    }
}

async fn run_client(plan: Arc<LoadPlan>, begin: Arc<Barrier>, end: Arc<AtomicBool>) -> Vec<(Instant, u64)> {
    let mut client = McpClient::open(&plan.endpoint, ClientOptions::new(plan.era)).await.unwrap();
    let text = "x".repeat(plan.payload);
    let checked = client.call(&plan.tool, &text).await.unwrap();
    assert_eq!(checked["result"]["content"][0]["text"], text, "{checked}");
    let request = client.template(&plan.tool, &text);
    begin.wait().await;
    let mut times = Vec::new();
    let mut begun = Instant::now();
    while !end.load(Ordering::Relaxed) {
        client.repeat(&request).await.unwrap();
        let now = Instant::now();
        times.push((now, u64::try_from((now - begun).as_nanos()).unwrap_or(u64::MAX)));
        begun = now;
    }
    times
}
