//! Benchmark of the Rust SDK's client: starts the echo server as a child and calls its tool.

#![allow(clippy::unwrap_used, reason = "a benchmark panics on errors")]

use std::hint::black_box;
use std::sync::Arc;

use rmcp::ClientServiceExt;
use rmcp::model::{CallToolRequestParams, JsonObject, ProtocolVersion};
use rmcp::service::ClientLifecycleMode;
use rmcp::transport::TokioChildProcess;
use tokio::process::Command;
use wharf_peers::{BenchOptions, block_on, run_closed_loop};

fn main() {
    let options = BenchOptions::from_args();
    block_on(options.flavour, measure(options));
}

async fn measure(options: BenchOptions) {
    let transport = TokioChildProcess::new(Command::new(&options.server)).unwrap();
    let lifecycle =
        ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None };
    let service = ().serve_with_lifecycle(transport, lifecycle).await.unwrap();
    let peer = service.peer().clone();
    let text: Arc<str> = options.text().into();
    // `call_tool_once` is the SDK's cheapest typed call: the convenience method above it clones the arguments for a
    // possible retry.
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
    report.print();
}
