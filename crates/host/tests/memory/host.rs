//! The host under test: one healthy server, then the flooding ones beside it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;
use wharf::spec::{
    EnvValue, Environment, HttpSpec, HttpTransport, ServerEntry, ServerName, ServerSpec, StdioSpec, ToolId,
};
use wharf::tools::{ToolCaller, ToolInvocation};
use wharf::{CallOptions, Host, RawJson};
use wharf_testkit::oracle;

use crate::process::{Load, Watch, memory, reset_peak};

/// Between two calls of the healthy server.
const PACE: Duration = Duration::from_millis(4);
/// Calls of each flooding server under way at once.
const AT_ONCE: usize = 4;

type Failures = Arc<Mutex<BTreeMap<String, u64>>>;

/// `FORM KIND COUNT SECONDS MARK FOLDER [URL…]`: prints one line of JSON with what was measured.
pub fn run(arguments: &[String]) {
    // As the program `wharf` does.
    wharf::guard::return_large_memory();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure(arguments));
}

async fn measure(arguments: &[String]) {
    let [form, kind, count, seconds, mark, folder, urls @ ..] = arguments else { panic!("{arguments:?}") };
    let (count, seconds) = (count.parse::<usize>().unwrap(), seconds.parse().unwrap());
    let healthy = entry("healthy", stdio("quiet", mark));
    let surroundings = Environment { env: std::env::vars_os().collect(), cwd: folder.into() };
    let builder = Host::builder().servers([healthy.clone()]).gate(Arc::new(wharf::tools::AllowAllGate));
    let host = builder.environment(surroundings).state_dir(Path::new(folder).join("state")).start().await.unwrap();
    // A reader that never reads: events are kept for it.
    let _unread = host.events();
    host.wait_until_ready("healthy").await.unwrap();
    for _ in 0..200 {
        call_healthy(&host).await;
    }
    let idle = memory("VmRSS");
    reset_peak();
    let spec = |nth: usize| match form.as_str() {
        "stdio" => stdio(kind, mark),
        form => http(&urls[nth], form),
    };
    let hostile = (0..count).map(|nth| entry(&format!("flood{nth}"), spec(nth)));
    host.set_servers([healthy].into_iter().chain(hostile).collect()).await;
    let began = Instant::now();
    let (until, failures) = (began + Duration::from_secs(seconds), Failures::default());
    let mut calls = JoinSet::new();
    for nth in 0..count * AT_ONCE {
        calls.spawn(call_flood(host.clone(), nth / AT_ONCE, until, Arc::clone(&failures)));
    }
    let watch = Watch::start(mark);
    let latencies = call_until(&host, until).await;
    let loads: Vec<String> = watch.finish().iter().map(Load::line).collect();
    let peak = memory("VmHWM");
    calls.shutdown().await;
    let catalog = host.catalog();
    let sections = (0..count).filter_map(|nth| catalog.section(&format!("flood{nth}")));
    let lists: Vec<String> =
        sections.flat_map(|section| &section.failures).map(|(list, why)| format!("{list}: {why}")).collect();
    let found = json!({
        "idle": idle, "peak": peak, "loads": loads, "latencies": latencies, "failures": *failures.lock().unwrap(), "lists": lists,
    });
    println!("{found}");
    host.close().await;
}

fn entry(name: &str, spec: ServerSpec) -> ServerEntry {
    ServerEntry::new(ServerName::new(name).unwrap(), spec)
}

fn stdio(kind: &str, mark: &str) -> ServerSpec {
    let mut spec = StdioSpec { program: std::env::current_exe().unwrap().into(), ..StdioSpec::default() };
    spec.args = ["flood", "stdio", kind].map(Into::into).into();
    spec.env.push((oracle::MARKER.into(), EnvValue::Plain(mark.into())));
    ServerSpec::Stdio(spec)
}

fn http(url: &str, form: &str) -> ServerSpec {
    let mut spec = HttpSpec::new(url.parse().unwrap());
    spec.form = if form == "sse" { HttpTransport::Sse } else { HttpTransport::Streamable };
    ServerSpec::Http(spec)
}

async fn call_healthy(host: &Host) -> Duration {
    let began = Instant::now();
    let tool = ToolId::new(&ServerName::new("healthy").unwrap(), "flood");
    host.call(&tool, &RawJson::empty_object(), CallOptions::default()).await.unwrap();
    began.elapsed()
}

/// Calls the healthy server at a steady pace; how long each call took, in microseconds.
async fn call_until(host: &Host, until: Instant) -> Vec<u128> {
    let mut latencies = Vec::new();
    while Instant::now() < until {
        latencies.push(call_healthy(host).await.as_micros());
        tokio::time::sleep(PACE).await;
    }
    latencies
}

/// Calls a flooding server as an agent does, again and again.
async fn call_flood(host: Host, nth: usize, until: Instant, failures: Failures) {
    let name = format!("mcp__flood{nth}__flood");
    while Instant::now() < until {
        // An agent calls what it was told of.
        if host.catalog().section(&format!("flood{nth}")).is_none_or(|section| section.tool("flood").is_none()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        }
        let call = ToolInvocation::new(RawJson::empty_object(), ToolCaller::agent());
        let outcome = host.registry().call(&name, call).await;
        let Err(failure) = outcome else { continue };
        let text: String = failure.to_string().chars().take(120).collect();
        *failures.lock().unwrap().entry(text).or_default() += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
