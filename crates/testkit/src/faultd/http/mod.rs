//! `faultd http` and `faultd sse`: the server over Streamable HTTP in every era, and over the HTTP+SSE of 2024-11-05.
//!
//! Listens on a loopback port of the system's choice, writes `listening 127.0.0.1:PORT` to stdout, and serves until
//! stdin ends: Streamable HTTP at `/mcp`, HTTP+SSE at `/sse`. One blocking thread for each connection, and HTTP written
//! by hand, so that it can be written wrongly.
//!
//! The ledger has these lines besides those of stdio:
//! `connected`, `post <method> <session>`, `get <last-event-id> <session>`, `delete <session>` (each `-` where there is
//! none, and method `reply` where the client answers), `authorization <value>`, `refused <method> <nonce>` for a
//! request that was turned away before anything was done, `closed <id>` when the client went before it had the whole
//! answer, `listen <id>`, `stale before` for a call of a tool that the client was told is gone, `cursor lost`,
//! `round <nonce> <number>` for a call that is asked to come again, and `elsewhere <verb> <target>` with
//! `elsewhere header <name>: <value>` for what reached the other origin.

mod body;
mod changes;
mod channel;
mod compression;
mod elsewhere;
mod events;
mod exchange;
mod flaw;
mod listen;
mod probe;
mod resume;
mod rounds;
mod server;
mod status;
mod streamable;

use std::convert::Infallible;
use std::io::{BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::process::exit;
use std::sync::Arc;

use crate::request::Request;
use exchange::Exchange;
use flaw::Flaw;
use server::HttpServer;

use super::options::{Form, Options};

/// Serves until stdin ends; the process ends with it.
pub fn serve(options: Options) -> Result<Infallible, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let elsewhere = elsewhere::listen(options.clone())?;
    let server = Arc::new(HttpServer::new(options, address, elsewhere)?);
    std::thread::spawn(move || accept(&server, &listener));
    println!("listening {address}");
    let mut ignored = [0; 1024];
    while std::io::stdin().read(&mut ignored).is_ok_and(|read| read > 0) {}
    exit(0)
}

/// Whether `name` is a fault in this form.
pub fn knows(form: Form, name: &str) -> bool {
    Fault::find(form, name).is_some()
}

/// What a fault does with a request. The line is the healthy answer, and empty where there is none yet.
type Act = fn(&Exchange<'_>, &str);

/// A fault: what it does, and to which requests.
#[derive(Clone, Copy)]
enum Fault {
    None,
    /// Committed at the moment that the phase names.
    Strike {
        act: Act,
        stage: Stage,
        times: Times,
    },
    /// Sees every posted message first; true keeps it from the healthy server.
    Intercept(fn(&Exchange<'_>) -> bool),
    /// In place of a stream on which the server speaks first.
    Listen(fn(&Exchange<'_>)),
    /// Every connection ends in this way when an answer has gone out.
    Connection(Manners),
    /// A fault that only HTTP+SSE can have.
    Channel(Flaw),
}

/// How far a request has come when a fault strikes it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It is turned away in a manner that proves that nothing was done: the ledger has no call.
    Refused,
    /// It has arrived, and nothing was done; but the client cannot know that.
    Arrived,
    /// It was carried out, and the answer is ready.
    Answered,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    Once,
    /// Again and again, from the phase's moment on.
    Always,
    /// As always, but a request with an `Authorization` is served.
    UntilAuthorized,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Manners {
    /// Closes after each answer without having said so.
    CloseAfterAnswer,
    /// Resets the connection when the second request arrives on it, and reads nothing of it.
    ResetOnReuse,
}

impl Fault {
    fn find(form: Form, name: &str) -> Option<Fault> {
        if name == "ok" {
            return Some(Fault::None);
        }
        if form == Form::Sse {
            return Flaw::find(name).map(Fault::Channel);
        }
        match name {
            "H25" => Some(Fault::Connection(Manners::CloseAfterAnswer)),
            "H25-reset" => Some(Fault::Connection(Manners::ResetOnReuse)),
            _ => status::find(name)
                .or_else(|| body::find(name))
                .or_else(|| compression::find(name))
                .or_else(|| events::find(name))
                .or_else(|| resume::find(name))
                .or_else(|| elsewhere::find(name))
                .or_else(|| listen::find(name))
                .or_else(|| changes::find(name))
                .or_else(|| rounds::find(name))
                .or_else(|| probe::find(name)),
        }
    }

    /// Turned away once, provably before anything was done.
    fn refuse(act: Act) -> Fault {
        Fault::Strike { act, stage: Stage::Refused, times: Times::Once }
    }

    /// One answer is spoilt.
    fn spoil(act: Act) -> Fault {
        Fault::Strike { act, stage: Stage::Answered, times: Times::Once }
    }
}

fn accept(server: &Arc<HttpServer>, listener: &TcpListener) {
    for stream in listener.incoming().flatten() {
        server.options.record("connected");
        let server = Arc::clone(server);
        std::thread::spawn(move || converse(&server, &stream));
    }
}

/// One request after the other, until either side has had enough.
fn converse(server: &Arc<HttpServer>, stream: &TcpStream) {
    stream.set_nodelay(true).ok();
    let mut input = BufReader::new(stream);
    let mut served = 0;
    loop {
        if served == 1 && server.manners() == Some(Manners::ResetOnReuse) {
            return reset_on_reuse(stream);
        }
        let Some(read) = Request::read(&mut input) else { return };
        let Ok(request) = read.inspect_err(|problem| server.options.record(&format!("violation {problem}"))) else {
            return;
        };
        if is_over_after(server, &request, stream) {
            return;
        }
        served += 1;
    }
}

/// Waits for a request without reading it; what is unread when the connection closes makes that a reset.
fn reset_on_reuse(stream: &TcpStream) {
    stream.peek(&mut [0]).ok();
}

fn is_over_after(server: &Arc<HttpServer>, request: &Request, stream: &TcpStream) -> bool {
    if let Some(value) = request.header("authorization") {
        server.options.record(&format!("authorization {value}"));
    }
    let exchange = Exchange::new(server, request, stream);
    match server.options.form {
        Form::Sse => channel::serve(&exchange),
        Form::Stdio | Form::Http => streamable::serve(&exchange),
    }
    exchange.is_over() || server.manners() == Some(Manners::CloseAfterAnswer)
}
