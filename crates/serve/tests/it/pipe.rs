//! A client on a pipe.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, split};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use wharf_serve::{LEAVE_LINE, serve_lines, serve_relay};

use crate::service::TestService;

struct PipeClient {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: tokio::io::WriteHalf<DuplexStream>,
    serving: JoinHandle<std::io::Result<()>>,
}

fn connect(service: &TestService) -> PipeClient {
    let (own, theirs) = tokio::io::duplex(1 << 16);
    let service = service.clone();
    let serving = tokio::spawn(async move {
        let (input, output) = split(theirs);
        serve_lines(&service, BufReader::new(input), output).await
    });
    let (input, output) = split(own);
    PipeClient { lines: BufReader::new(input).lines(), output, serving }
}

impl PipeClient {
    async fn send(&mut self, id: u64, method: &str) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}});
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Option<Value> {
        self.lines.next_line().await.unwrap().map(|line| serde_json::from_str(&line).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn request_in_progress_when_the_input_ends_is_answered() {
    let service = TestService::default();
    let mut client = connect(&service);
    client.send(1, "initialize").await;
    assert_eq!(client.next().await.unwrap()["id"], 1);
    client.send(2, "later").await;
    client.output.shutdown().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    service.release.notify_one();
    assert_eq!(client.next().await.unwrap()["id"], 2);
    client.serving.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn request_that_does_not_finish_after_the_end_of_the_input_is_cancelled() {
    let service = TestService::default();
    let mut client = connect(&service);
    client.send(1, "initialize").await;
    client.send(2, "later").await;
    assert_eq!(client.next().await.unwrap()["id"], 1);
    let started = Instant::now();
    client.output.shutdown().await.unwrap();
    service.cancelled.notified().await;
    assert_eq!(started.elapsed().as_secs(), 5);
    assert!(client.next().await.is_none());
    client.serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn malformed_result_costs_its_own_request_an_error() {
    let service = TestService::default();
    let mut client = connect(&service);
    client.send(1, "initialize").await;
    client.send(2, "malformed").await;
    client.send(3, "ping").await;
    assert_eq!(client.next().await.unwrap()["id"], 1);
    let refused = client.next().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32603)));
    assert_eq!(client.next().await.unwrap()["result"], json!({}));
}

/// A request that the relay sent before it knew is answered, also if its answer takes long.
#[tokio::test(start_paused = true)]
async fn server_that_leaves_answers_what_a_relay_has_sent() {
    let service = TestService::default();
    let (own, theirs) = tokio::io::duplex(1 << 16);
    let (leave, leaving) = tokio::sync::oneshot::channel::<()>();
    let served = service.clone();
    let serving = tokio::spawn(async move {
        let (input, output) = split(theirs);
        serve_relay(&served, BufReader::new(input), output, async { drop(leaving.await) }).await
    });
    let (input, output) = split(own);
    let mut client = PipeClient { lines: BufReader::new(input).lines(), output, serving };
    client.output.write_all(b"\x01\n").await.unwrap();
    assert_eq!(client.next().await.unwrap()["error"]["code"], -32700, "the server does not leave yet");
    client.send(1, "initialize").await;
    assert_eq!(client.next().await.unwrap()["id"], 1);
    leave.send(()).unwrap();
    assert_eq!(client.lines.next_line().await.unwrap().unwrap().as_bytes(), LEAVE_LINE);
    client.send(2, "later").await;
    client.output.write_all(b"\x01\n").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    service.release.notify_one();
    assert_eq!(client.next().await.unwrap()["id"], 2);
    assert_eq!(client.lines.next_line().await.unwrap().unwrap().as_bytes(), LEAVE_LINE);
    assert!(client.lines.next_line().await.unwrap().is_none());
    client.serving.await.unwrap().unwrap();
}
