//! The HTTP limit: a keep-alive client on the same HTTP library that sends the same requests as this client and reads
//! the responses without parsing them.

#![allow(clippy::unwrap_used, reason = "a benchmark panics on errors")]

use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Response, redirect};
use wharf_peers::{BenchOptions, HttpEchoServer, Template, block_on, run_closed_loop};

const REVISION: &str = "2026-07-28";

fn main() {
    let options = BenchOptions::from_args();
    block_on(options.flavour, measure(options));
}

async fn measure(options: BenchOptions) {
    let server = HttpEchoServer::start(&options);
    // Same settings as `wharf-net`, as far as they affect the measurement.
    let client = Client::builder().no_proxy().redirect(redirect::Policy::none()).tcp_nodelay(true).build().unwrap();
    let bare = Arc::new(BareHttpClient { client, url: server.url.parse().unwrap(), template: Template::new(&options) });
    bare.check(&options).await;
    let report = run_closed_loop("bare", &options, move || {
        let bare = Arc::clone(&bare);
        async move { bare.call().await }
    })
    .await;
    report.with_server_counts(server.stop()).print();
}

struct BareHttpClient {
    client: Client,
    url: reqwest::Url,
    template: Template,
}

impl BareHttpClient {
    async fn call(&self) {
        let mut response = self.send().await;
        while response.chunk().await.unwrap().is_some() {}
    }

    async fn send(&self) -> Response {
        let mut body = Vec::with_capacity(self.template.length());
        self.template.append(&mut body);
        let request = self.client.post(self.url.clone()).body(Bytes::from(body));
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.header(ACCEPT, "application/json, text/event-stream");
        let request = request.header("mcp-protocol-version", REVISION);
        request.header("mcp-method", "tools/call").header("mcp-name", "echo").send().await.unwrap()
    }

    /// Makes one call and verifies its response.
    async fn check(&self, options: &BenchOptions) {
        let response = self.send().await;
        assert!(response.status().is_success(), "{}", response.status());
        let body = response.bytes().await.unwrap();
        let expected = format!(r#""text":"{}""#, options.text());
        assert!(memmem::find(&body, expected.as_bytes()).is_some(), "the text comes back");
    }
}
