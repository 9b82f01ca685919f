//! The HTTP server of all benchmark clients, plain hyper on one thread. It answers with JSON, or with
//! an SSE stream of one event.
//!
//! It prints its address at startup, and the number of accepted connections and requests at exit. It exits when its
//! standard input ends.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark tool: it prints, reads its arguments and panics on errors"
)]

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use wharf_peers::ResponseForm;
use wharf_peers::echo::append_response;

const USAGE: &str = "usage: bench-http-echo [--answers json|sse]";

/// Counters of connections and requests.
#[derive(Default)]
struct RequestCounters {
    connections: AtomicUsize,
    requests: AtomicUsize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let manner = parse_options();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening http://{}/mcp", listener.local_addr().unwrap());
    let seen = Arc::new(RequestCounters::default());
    tokio::select! {
        () = accept(listener, manner, Arc::clone(&seen)) => {}
        () = wait_for_stdin_end() => {}
    }
    println!("connections {}", seen.connections.load(Ordering::Relaxed));
    println!("requests {}", seen.requests.load(Ordering::Relaxed));
}

fn parse_options() -> ResponseForm {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["--answers", "json"] => ResponseForm::Json,
        ["--answers", "sse"] => ResponseForm::Sse,
        _ => panic!("{USAGE}"),
    }
}

async fn accept(listener: TcpListener, manner: ResponseForm, seen: Arc<RequestCounters>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        seen.connections.fetch_add(1, Ordering::Relaxed);
        stream.set_nodelay(true).unwrap();
        tokio::spawn(serve_connection(stream, manner, Arc::clone(&seen)));
    }
}

async fn wait_for_stdin_end() {
    let mut input = tokio::io::stdin();
    let mut rest = [0; 64];
    while input.read(&mut rest).await.is_ok_and(|count| count > 0) {}
}

async fn serve_connection(stream: TcpStream, manner: ResponseForm, seen: Arc<RequestCounters>) {
    let service = service_fn(move |request| {
        seen.requests.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, Infallible>(respond(request, manner).await) }
    });
    // Ignore disconnects.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(request: Request<Incoming>, manner: ResponseForm) -> Response<SingleChunkBody> {
    if request.method() != Method::POST {
        return status(StatusCode::METHOD_NOT_ALLOWED);
    }
    let Ok(message) = request.into_body().collect().await else { return status(StatusCode::BAD_REQUEST) };
    let message = message.to_bytes();
    let mut body = Vec::with_capacity(message.len() + 256);
    let media = match manner {
        ResponseForm::Json => {
            append_response(&message, &mut body);
            "application/json"
        }
        ResponseForm::Sse => {
            answer_event(&message, &mut body);
            "text/event-stream"
        }
    };
    if body.is_empty() {
        return status(StatusCode::ACCEPTED);
    }
    let mut response = Response::new(SingleChunkBody { bytes: body.into(), sized: manner == ResponseForm::Json });
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

fn answer_event(message: &[u8], body: &mut Vec<u8>) {
    const BEFORE: &[u8] = b"event: message\ndata: ";
    body.extend_from_slice(BEFORE);
    append_response(message, body);
    if body.len() == BEFORE.len() {
        body.clear();
    } else {
        body.extend_from_slice(b"\n\n");
    }
}

fn status(status: StatusCode) -> Response<SingleChunkBody> {
    let mut response = Response::new(SingleChunkBody { bytes: Bytes::new(), sized: true });
    *response.status_mut() = status;
    response
}

/// A body in one piece. A stream reports no size.
struct SingleChunkBody {
    bytes: Bytes,
    sized: bool,
}

impl Body for SingleChunkBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::take(&mut self.bytes);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if self.sized { SizeHint::with_exact(self.bytes.len() as u64) } else { SizeHint::default() }
    }
}
