//! The way out against what goes wrong below HTTP: ports, bytes, TLS, HTTP/2 frames and proxies, all on loopback.
//!
//! What must hold is in `faults.md`, 2.2; each test names its row. The servers count what reached them, and
//! [`SendError::is_certainly_unsent`] has to agree with that count.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod authorizing;
mod bodies;
mod breaking;
mod dialling;
mod encryption;
mod files;
mod heads;
mod http2;
mod memory;
mod proxies;
mod reach;
mod redirects;
mod served;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use url::Url;
use wharf_net::{BodyError, HeaderMap, HttpRequest, Method, Net, NetOptions, RedirectPolicy, SendError, StatusCode};
use wharf_testkit::transport_faults::Endpoint;

/// Long enough for anything that is going to happen.
const SOON: Duration = Duration::from_secs(10);
/// How long tests wait for a connection that will not come.
const BRIEF: Duration = Duration::from_millis(300);
/// What a body may be.
const LIMIT: usize = 8 << 20;

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Answered(StatusCode, Bytes),
    Unsent(SendError),
    Unread(BodyError),
}

impl Outcome {
    /// The error of a request that got no answer.
    #[track_caller]
    fn unsent(self) -> SendError {
        match self {
            Outcome::Unsent(error) => error,
            other => panic!("expected no answer, got {other:?}"),
        }
    }

    /// The error of an answer that could not be read.
    #[track_caller]
    fn unread(self) -> BodyError {
        match self {
            Outcome::Unread(error) => error,
            other => panic!("expected an unreadable answer, got {other:?}"),
        }
    }

    fn is_healthy(&self, word: &str) -> bool {
        matches!(self, Outcome::Answered(StatusCode::OK, body) if repeats(body, word))
    }
}

/// Whether a body is the healthy answer to [`call`].
fn repeats(body: &[u8], word: &str) -> bool {
    let Ok(answer) = serde_json::from_slice::<Value>(body) else { return false };
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    serde_json::from_str::<Value>(text).is_ok_and(|said| said == json!({ "word": word }))
}

async fn open() -> Net {
    open_with(NetOptions::default()).await
}

async fn open_with(options: NetOptions) -> Net {
    Net::open(&options).await.unwrap()
}

/// A way out that gives up dialling after [`BRIEF`].
async fn open_hurried() -> Net {
    open_with(hurried()).await
}

fn hurried() -> NetOptions {
    let mut options = NetOptions::default();
    options.connect_timeout = BRIEF;
    options
}

fn plain(address: SocketAddr) -> String {
    format!("http://{address}/mcp")
}

/// By name, because that is what certificates of servers are for.
fn secure(address: SocketAddr) -> String {
    format!("https://localhost:{}/mcp", address.port())
}

/// A request whose healthy answer repeats `word`.
fn call(url: &str, word: &str) -> HttpRequest {
    let params = json!({ "name": "echo", "arguments": { "word": word } });
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string();
    HttpRequest {
        method: Method::POST,
        url: Url::parse(url).unwrap(),
        headers: HeaderMap::new(),
        body: body.into(),
        redirects: RedirectPolicy::SameOrigin,
    }
}

/// Sends one call and reads all of its answer. Never waits longer than [`SOON`].
async fn exchange(net: &Net, url: &str) -> Outcome {
    exchange_request(net, call(url, "hello")).await
}

async fn exchange_request(net: &Net, request: HttpRequest) -> Outcome {
    let whole = async {
        let mut response = match net.send(request).await {
            Ok(response) => response,
            Err(error) => return Outcome::Unsent(error),
        };
        match response.body.collect(LIMIT).await {
            Ok(body) => Outcome::Answered(response.status, body),
            Err(error) => Outcome::Unread(error),
        }
    };
    tokio::time::timeout(SOON, whole).await.expect("it never ended")
}

/// Checks that an error claims to have left nothing exactly when its server has seen nothing.
#[track_caller]
fn assert_proof(error: &SendError, server: &Endpoint) {
    assert_eq!(error.is_certainly_unsent(), server.requests() == 0, "{error}, {} delivered", server.requests());
}
