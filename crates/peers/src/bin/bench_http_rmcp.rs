//! Benchmark of the Rust SDK's client over Streamable HTTP, with one pooled HTTP client configured like the others'.

#![allow(clippy::unwrap_used, reason = "a benchmark panics on errors")]

use std::hint::black_box;
use std::sync::Arc;

use reqwest::{Client, redirect};
use rmcp::ClientServiceExt;
use rmcp::model::{CallToolRequestParams, JsonObject, ProtocolVersion};
use rmcp::service::ClientLifecycleMode;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use wharf_peers::{BenchOptions, HttpEchoServer, block_on, run_closed_loop};

fn main() {
    let options = BenchOptions::from_args();
    block_on(options.flavour, measure(options));
}

async fn measure(options: BenchOptions) {
    let server = HttpEchoServer::start(&options);
    let client = Client::builder().no_proxy().redirect(redirect::Policy::none()).tcp_nodelay(true).build().unwrap();
    let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
    // The default limit is sixteen concurrent requests.
    config.max_concurrent_requests = options.conc.max(config.max_concurrent_requests);
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let lifecycle =
        ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None };
    let service = ().serve_with_lifecycle(transport, lifecycle).await.unwrap();
    let peer = service.peer().clone();
    let text: Arc<str> = options.text().into();
    let report = run_closed_loop("rmcp", &options, move || {
        let (peer, text) = (peer.clone(), text.clone());
        async move {
            let arguments = JsonObject::from_iter([("text".to_owned(), (*text).into())]);
            let params = CallToolRequestParams::new("echo").with_arguments(arguments);
            black_box(peer.call_tool_once(params).await.unwrap());
        }
    })
    .await;
    service.cancel().await.unwrap();
    report.with_server_counts(server.stop()).print();
}
