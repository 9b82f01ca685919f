//! `faultd http` and `faultd sse`: the server over Streamable HTTP in every era, and over the HTTP+SSE of 2024-11-05.
//!
//! Listens on a free loopback port, prints `listening 127.0.0.1:PORT` to stdout, and serves until stdin ends:
//! Streamable HTTP at `/mcp`, HTTP+SSE at `/sse`. Each connection has a blocking thread, and HTTP is written without a
//! library, so that it can be malformed.
//!
//! The ledger has these lines in addition to those of stdio: `connected`, `post <method> <session>`, `get
//! <last-event-id> <session>`, `delete <session>` (`-` for a missing value, and method `reply` for a response of the
//! client), `authorization <value>`, `refused <method> <nonce>` for a request rejected before any processing, `closed
//! <id>` if the client disconnected before it had the complete response, `listen <id>`, `stale before` for a call of a
//! tool after the notification of its removal, `cursor lost`, `round <nonce> <number>` for a call that must be retried,
//! and `elsewhere <verb> <target>` with `elsewhere header <name>: <value>` for requests to the other origin.

mod body;
mod changes;
mod channel;
mod compression;
mod events;
mod exchange;
mod listen;
mod probe;
mod redirects;
mod resume;
mod rounds;
mod server;
mod sse_fault;
mod status;
mod streamable;

use std::convert::Infallible;
use std::io::{BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::process::exit;
use std::sync::Arc;

use crate::request::Request;
use exchange::FaultExchange;
use server::HttpFaultServer;
use sse_fault::SseFault;

use super::options::{FaultOptions, Form};

/// Serves until stdin ends; then exits the process.
pub fn serve(options: FaultOptions) -> Result<Infallible, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let elsewhere = redirects::listen(options.clone())?;
    let server = Arc::new(HttpFaultServer::new(options, address, elsewhere)?);
    std::thread::spawn(move || accept(&server, &listener));
    println!("listening {address}");
    let mut ignored = [0; 1024];
    while std::io::stdin().read(&mut ignored).is_ok_and(|read| read > 0) {}
    exit(0)
}

/// Reports whether `name` is a fault of this form.
pub fn knows(form: Form, name: &str) -> bool {
    HttpFault::find(form, name).is_some()
}

/// The action of a fault on a request. The line is the healthy response, or empty if there is none yet.
type HttpFaultAction = fn(&FaultExchange<'_>, &str);

/// A fault: its action, and the requests it applies to.
#[derive(Clone, Copy)]
enum HttpFault {
    None,
    /// Occurs in the configured phase.
    Strike {
        act: HttpFaultAction,
        stage: RequestStage,
        times: FaultRepeat,
    },
    /// Sees every posted message first; returning true hides it from the healthy server.
    Intercept(fn(&FaultExchange<'_>) -> bool),
    /// Replaces a server-initiated stream.
    Listen(fn(&FaultExchange<'_>)),
    /// Affects every connection after a response was sent.
    Connection(ConnectionFault),
    /// A fault specific to HTTP+SSE.
    Channel(SseFault),
}

/// Progress of a request when a fault occurs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestStage {
    /// The request is rejected in a way that proves it was not processed: the ledger has no call.
    Refused,
    /// The request arrived and was not processed, but the client cannot know that.
    Arrived,
    /// The request was executed, and the response is ready.
    Answered,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FaultRepeat {
    Once,
    /// Repeatedly, from the phase on.
    Always,
    /// Like `Always`, but a request with `Authorization` is served.
    UntilAuthorized,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionFault {
    /// Closes after each response without announcing it.
    CloseAfterAnswer,
    /// Resets the connection when a second request arrives, without reading it.
    ResetOnReuse,
}

impl HttpFault {
    fn find(form: Form, name: &str) -> Option<HttpFault> {
        if name == "ok" {
            return Some(HttpFault::None);
        }
        if form == Form::Sse {
            return SseFault::find(name).map(HttpFault::Channel);
        }
        match name {
            "H25" => Some(HttpFault::Connection(ConnectionFault::CloseAfterAnswer)),
            "H25-reset" => Some(HttpFault::Connection(ConnectionFault::ResetOnReuse)),
            _ => status::find(name)
                .or_else(|| body::find(name))
                .or_else(|| compression::find(name))
                .or_else(|| events::find(name))
                .or_else(|| resume::find(name))
                .or_else(|| redirects::find(name))
                .or_else(|| listen::find(name))
                .or_else(|| changes::find(name))
                .or_else(|| rounds::find(name))
                .or_else(|| probe::find(name)),
        }
    }

    /// Creates a fault that rejects one request, provably before any processing.
    fn reject_once(act: HttpFaultAction) -> HttpFault {
        HttpFault::Strike { act, stage: RequestStage::Refused, times: FaultRepeat::Once }
    }

    /// Creates a fault that modifies one response.
    fn modify_response(act: HttpFaultAction) -> HttpFault {
        HttpFault::Strike { act, stage: RequestStage::Answered, times: FaultRepeat::Once }
    }
}

fn accept(server: &Arc<HttpFaultServer>, listener: &TcpListener) {
    for stream in listener.incoming().flatten() {
        server.options.record("connected");
        let server = Arc::clone(server);
        std::thread::spawn(move || serve_connection(&server, &stream));
    }
}

/// Serves requests until either side closes.
fn serve_connection(server: &Arc<HttpFaultServer>, stream: &TcpStream) {
    stream.set_nodelay(true).ok();
    let mut input = BufReader::new(stream);
    let mut served = 0;
    loop {
        if served == 1 && server.connection_fault() == Some(ConnectionFault::ResetOnReuse) {
            return reset_on_reuse(stream);
        }
        let Some(read) = Request::read(&mut input) else { return };
        let Ok(request) = read.inspect_err(|problem| server.options.record(&format!("violation {problem}"))) else {
            return;
        };
        if serve_request(server, &request, stream) {
            return;
        }
        served += 1;
    }
}

/// Waits for a request without reading it; unread data at close causes a reset.
fn reset_on_reuse(stream: &TcpStream) {
    stream.peek(&mut [0]).ok();
}

fn serve_request(server: &Arc<HttpFaultServer>, request: &Request, stream: &TcpStream) -> bool {
    if let Some(value) = request.header("authorization") {
        server.options.record(&format!("authorization {value}"));
    }
    let exchange = FaultExchange::new(server, request, stream);
    match server.options.form {
        Form::Sse => channel::serve(&exchange),
        Form::Stdio | Form::Http => streamable::serve(&exchange),
    }
    exchange.is_over() || server.connection_fault() == Some(ConnectionFault::CloseAfterAnswer)
}
