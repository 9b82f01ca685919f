//! The least a gateway can do: HTTP in, one pipe out, ids exchanged. It has no sessions, rules, log or supervision.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use memchr::memmem;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

/// Flags: `--server PATH`. Prints `listening URL`, and ends with its input.
pub fn run(words: &[String]) {
    let server = crate::value(words, "--server").expect("--server PATH").to_owned();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::spawn(serve(server));
        let mut rest = String::new();
        let _ = BufReader::new(tokio::io::stdin()).read_line(&mut rest).await;
    });
}

async fn serve(server: String) {
    let mut child =
        Command::new(server).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let (lines, queue) = mpsc::unbounded_channel();
    let hop = Arc::new(Hop { lines, waiting: Mutex::default(), next: AtomicU64::new(1) });
    tokio::spawn(write_lines(child.stdin.take().unwrap(), queue));
    tokio::spawn(read_lines(child.stdout.take().unwrap(), Arc::clone(&hop)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening http://{}/mcp", listener.local_addr().unwrap());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::spawn(serve_connection(stream, Arc::clone(&hop)));
    }
}

struct Hop {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Mutex<HashMap<u64, WaitingRequest>>,
    next: AtomicU64,
}

struct WaitingRequest {
    /// The client's id.
    id: Vec<u8>,
    answer: oneshot::Sender<Vec<u8>>,
}

async fn serve_connection(stream: TcpStream, hop: Arc<Hop>) {
    let service = service_fn(move |request| {
        let hop = Arc::clone(&hop);
        async move { Ok::<_, Infallible>(hop.respond(request).await) }
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

impl Hop {
    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let Some((before, id, after)) = split_at_id(&body) else {
            let mut accepted = Response::new(Full::default());
            *accepted.status_mut() = StatusCode::ACCEPTED;
            return accepted;
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.waiting.lock().unwrap().insert(number, WaitingRequest { id: id.to_vec(), answer });
        let number = number.to_string();
        self.lines.send([before, number.as_bytes(), after, b"\n"].concat()).unwrap();
        let mut response = Response::new(Full::new(answered.await.unwrap().into()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    fn deliver(&self, line: &[u8]) {
        let Some((before, id, after)) = split_at_id(line) else { return };
        let number = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
        let Some(WaitingRequest { id, answer }) =
            number.and_then(|number: u64| self.waiting.lock().unwrap().remove(&number))
        else {
            return;
        };
        let _ = answer.send([before, &id, after.trim_ascii_end()].concat());
    }
}

/// Splits a message around its numeric id.
fn split_at_id(message: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    const ID: &[u8] = br#""id":"#;
    let begin = memmem::find(message, ID)? + ID.len();
    let length = message[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    (length > 0).then(|| (&message[..begin], &message[begin..begin + length], &message[begin + length..]))
}

async fn write_lines(mut input: ChildStdin, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) -> io::Result<()> {
    while let Some(mut lines) = queue.recv().await {
        while let Ok(line) = queue.try_recv() {
            lines.extend(line);
        }
        input.write_all(&lines).await?;
    }
    Ok(())
}

async fn read_lines(output: ChildStdout, hop: Arc<Hop>) -> io::Result<()> {
    let (mut output, mut line) = (BufReader::with_capacity(1 << 16, output), Vec::new());
    while output.read_until(b'\n', &mut line).await? > 0 {
        hop.deliver(&line);
        line.clear();
    }
    Ok(())
}
