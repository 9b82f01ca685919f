//! Benchmark of the Rust SDK's client: starts the echo server as a child and calls its tool, over stdio or, with
//! `--http`, over Streamable HTTP with one pooled HTTP client configured like the others'.

#![allow(clippy::unwrap_used, reason = "a benchmark panics on errors")]

use std::hint::black_box;
use std::sync::Arc;

use reqwest::{Client, redirect};
use rmcp::model::{CallToolRequestParams, JsonObject, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientServiceExt, RoleClient};
use tokio::process::Command;
use wharf_peers::{BenchOptions, BenchReport, HttpEchoServer, block_on, run_closed_loop};

fn main() {
    let options = BenchOptions::from_args();
    block_on(options.flavour, async move {
        if options.http { measure_http(options).await } else { measure_stdio(options).await }
    });
}

async fn measure_stdio(options: BenchOptions) {
    let transport = TokioChildProcess::new(Command::new(&options.server)).unwrap();
    measure(().serve_with_lifecycle(transport, lifecycle()).await.unwrap(), &options).await.print();
}

async fn measure_http(options: BenchOptions) {
    let server = HttpEchoServer::start(&options);
    let client = Client::builder().no_proxy().redirect(redirect::Policy::none()).tcp_nodelay(true).build().unwrap();
    let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
    // The default limit is sixteen concurrent requests.
    config.max_concurrent_requests = options.conc.max(config.max_concurrent_requests);
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let report = measure(().serve_with_lifecycle(transport, lifecycle()).await.unwrap(), &options).await;
    report.with_server_counts(server.stop()).print();
}

fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None }
}

async fn measure(service: RunningService<RoleClient, ()>, options: &BenchOptions) -> BenchReport {
    let peer = service.peer().clone();
    let text: Arc<str> = options.text().into();
    // `call_tool_once` is the SDK's cheapest typed call: the convenience method above it clones the arguments for a
    // possible retry.
    let report = run_closed_loop("rmcp", options, move || {
        let (peer, text) = (peer.clone(), text.clone());
        async move {
            let arguments = JsonObject::from_iter([("text".to_owned(), (*text).into())]);
            let params = CallToolRequestParams::new("echo").with_arguments(arguments);
            black_box(peer.call_tool_once(params).await.unwrap());
        }
    })
    .await;
    service.cancel().await.unwrap();
    report
}
