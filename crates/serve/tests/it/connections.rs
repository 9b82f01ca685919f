//! Clients over HTTP that do not behave.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wharf_serve::{ClientAccess, HttpContent, HttpExposure, HttpForm, HttpLimits, HttpServer};

use crate::service::TestService;

/// Time by which everything in these tests has happened.
const DEADLINE: Duration = Duration::from_secs(20);

struct RunningServer {
    address: String,
    serving: JoinHandle<()>,
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(limits: HttpLimits) -> RunningServer {
    let (address, service) = ("127.0.0.1:0".parse().unwrap(), Arc::new(TestService::default()));
    let access = ClientAccess::token("secret");
    let server = HttpServer::bind(address, HttpForm::Streamable, service, access, limits).await.unwrap();
    let url = server.url().unwrap();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    RunningServer { address, serving: tokio::spawn(server.run(std::future::pending())) }
}

impl RunningServer {
    async fn connect(&self) -> TcpStream {
        timeout(DEADLINE, TcpStream::connect(&self.address)).await.unwrap().unwrap()
    }

    /// Returns a POST of a message as text.
    fn request(&self, headers: &str, method: &str) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}).to_string();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            self.address,
            body.len()
        )
    }

    /// Sends a message on a connection of its own and returns the response.
    async fn post(&self, headers: &str, method: &str) -> String {
        let mut stream = self.connect().await;
        let request = self.request(&format!("Connection: close\r\n{headers}"), method);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        timeout(DEADLINE, stream.read_to_string(&mut text)).await.unwrap().unwrap();
        text
    }
}

const TOKEN: &str = "Authorization: Bearer secret\r\n";

#[tokio::test]
async fn clients_without_a_token_do_not_keep_out_others() {
    let mut limits = HttpLimits::default();
    limits.connections = 300;
    let server = serve(limits).await;
    let mut silent = Vec::new();
    for number in 0..400 {
        let mut stream = server.connect().await;
        if number % 2 == 0 {
            // Refused, and the response is never read.
            let _ = stream.write_all(server.request("", "initialize").as_bytes()).await;
        }
        silent.push(stream);
    }
    let opened = server.post(TOKEN, "initialize").await;
    assert!(opened.starts_with("HTTP/1.1 200 "), "{opened}");
}

#[tokio::test]
async fn refused_connection_is_closed() {
    let server = serve(HttpLimits::default()).await;
    let mut stream = server.connect().await;
    stream.write_all(server.request("", "initialize").as_bytes()).await.unwrap();
    let mut text = String::new();
    timeout(DEADLINE, stream.read_to_string(&mut text)).await.unwrap().unwrap();
    assert!(text.starts_with("HTTP/1.1 401 ") && text.contains("connection: close"), "{text}");
}

#[tokio::test]
async fn large_headers_are_refused() {
    let server = serve(HttpLimits::default()).await;
    let padding = |bytes| format!("{TOKEN}X-Padding: {}\r\n", "x".repeat(bytes));
    let accepted = server.post(&padding(15 * 1024), "initialize").await;
    assert!(accepted.starts_with("HTTP/1.1 200 "), "{accepted}");
    let refused = server.post(&padding(16 * 1024), "initialize").await;
    assert!(refused.starts_with("HTTP/1.1 431 "), "{refused}");
}

#[tokio::test]
async fn error_of_a_server_is_not_an_http_error() {
    let server = serve(HttpLimits::default()).await;
    let opened = server.post(TOKEN, "initialize").await;
    let session = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let headers = format!("{TOKEN}Mcp-Session-Id: {session}\r\n");
    let answered = server.post(&headers, "refuse").await;
    assert!(answered.starts_with("HTTP/1.1 200 "), "{answered}");
    let body: Value = serde_json::from_str(answered.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["error"]["code"], -32600);
}

#[tokio::test]
async fn slow_head_ends_the_connection() {
    let mut limits = HttpLimits::default();
    limits.header_timeout = Duration::from_millis(100);
    let server = serve(limits).await;
    for start in ["", "POST /mcp HT"] {
        let mut stream = server.connect().await;
        stream.write_all(start.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let ended = timeout(DEADLINE, stream.read_to_end(&mut rest)).await.expect("the connection ends");
        assert!(ended.is_err() || !rest.starts_with(b"HTTP/1.1 200"), "{start:?}");
    }
}

/// Another process accepts the connections of a server that leaves. Open ones are served once more.
#[tokio::test]
async fn server_that_leaves_closes_a_connection_after_its_next_response() {
    let service = Arc::new(TestService::default());
    let access = || ClientAccess::token("secret");
    let limits = HttpLimits::default;
    let bound = HttpServer::bind("127.0.0.1:0".parse().unwrap(), HttpForm::Streamable, service, access(), limits());
    let server = bound.await.unwrap();
    let (address, listener) = server.copy_listener().unwrap();
    let (leave, leaving) = tokio::sync::oneshot::channel::<()>();
    let leaving = async { drop(leaving.await) };
    let serving = tokio::spawn(server.run_until_left(leaving, std::future::pending()));
    let running = RunningServer { address: address.to_string(), serving };
    let mut stream = running.connect().await;
    stream.write_all(running.request(TOKEN, "initialize").as_bytes()).await.unwrap();
    let mut first = vec![0; 4096];
    let read = stream.read(&mut first).await.unwrap();
    assert!(!String::from_utf8_lossy(&first[..read]).contains("connection: close"));
    leave.send(()).unwrap();
    // In the queue of the listener until the other process accepts it.
    let waiting = tokio::spawn({
        let next = RunningServer { address: address.to_string(), serving: tokio::spawn(async {}) };
        async move { next.post(TOKEN, "initialize").await }
    });
    stream.write_all(running.request(TOKEN, "initialize").as_bytes()).await.unwrap();
    let mut last = String::new();
    timeout(DEADLINE, stream.read_to_string(&mut last)).await.unwrap().unwrap();
    assert!(last.starts_with("HTTP/1.1 200 ") && last.contains("connection: close"), "{last}");
    let mut running = running;
    timeout(DEADLINE, &mut running.serving).await.unwrap().unwrap();
    let listener = tokio::net::TcpListener::from_std(listener.into()).unwrap();
    let service = Arc::new(TestService::default());
    let content = HttpContent { form: HttpForm::Streamable, service, access: access(), limits: limits() };
    let server = HttpServer::from_listener(listener, &HttpExposure::default(), content).unwrap();
    let _running = RunningServer { address: String::new(), serving: tokio::spawn(server.run(std::future::pending())) };
    assert!(timeout(DEADLINE, waiting).await.unwrap().unwrap().starts_with("HTTP/1.1 200 "));
}
