//! `faultd`: a server that is healthy in every respect but the one it is named after. Here it speaks over stdio,
//! in [`http`] over HTTP.
//!
//! Blocking I/O: the main thread reads, slow calls run on threads, stdout has one holder at a time.
//! A fault is a function found by its name in one of the family modules. This module decides *when*
//! it is committed (see [`Phase`]); the families say *what* is done.

mod answers;
mod catalog;
mod frame;
mod framing;
mod healthy;
pub mod http;
mod kin;
mod lifecycle;
mod negotiation;
mod options;
mod out;
mod server;
mod serving;
mod tools;

use std::convert::Infallible;
use std::io::BufRead;
use std::process::exit;
use std::sync::Arc;

use serde_json::Value;

pub use catalog::{ODD_RESULT, ODD_SCHEMA};
use frame::Message;
pub use options::{Era, Form, HANDSHAKE, MODERN, Options, Phase};
use server::Server;

/// Runs the fault server on this process's stdin and stdout, or over HTTP until stdin ends; the arguments follow the
/// program's name.
///
/// A test binary may call this when its own first argument is `faultd`, which is then skipped here
/// and repeated for every process the server starts.
pub fn run(args: impl Iterator<Item = String>) -> ! {
    let mut args = args.skip_while(|first| first == "faultd").peekable();
    if args.next_if_eq("kin").is_some() {
        kin::run(args);
    }
    if args.next_if_eq("below").is_some() {
        exit(crate::below::run(&args.collect::<Vec<_>>()));
    }
    let Err(problem) = start(args);
    eprintln!("faultd: {problem}\n{}", options::USAGE);
    exit(2)
}

fn start(args: impl Iterator<Item = String>) -> Result<Infallible, String> {
    let options = Options::parse(args)?;
    match options.form {
        Form::Stdio => serve(&Arc::new(Server::new(options)?)),
        Form::Http | Form::Sse => http::serve(options),
    }
}

/// Whether `name` is a fault that `faultd stdio` knows.
pub fn knows(name: &str) -> bool {
    Fault::find(name).is_some()
}

/// What a fault does when its moment has come.
type Act = fn(&Arc<Server>, &Strike);
/// What a fault does with a message in place of the healthy server; false leaves the message to it.
type Intercept = fn(&Arc<Server>, &Message) -> bool;

/// A fault: what it does, and in which moments.
#[derive(Clone, Copy)]
enum Fault {
    None,
    /// Committed at the moment that the phase names.
    Strike {
        act: Act,
        timing: Timing,
    },
    /// Sees every message first. `handshake_only` makes the healthy rest a server without `server/discover`.
    Intercept {
        act: Intercept,
        handshake_only: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Timing {
    /// Once; phase `before` means the answer to the opening request.
    Once,
    /// Once; phase `before` means before anything is read.
    AtStart,
    /// Once; phase `after` needs no call, only an opening.
    WhenReady,
    /// Again and again, from the phase's moment on.
    Always,
}

impl Fault {
    fn find(name: &str) -> Option<Fault> {
        if name == "ok" {
            return Some(Fault::None);
        }
        lifecycle::find(name)
            .or_else(|| framing::find(name))
            .or_else(|| answers::find(name))
            .or_else(|| negotiation::find(name))
            .or_else(|| catalog::find(name))
    }

    fn once(act: Act) -> Fault {
        Fault::Strike { act, timing: Timing::Once }
    }

    fn at_start(act: Act) -> Fault {
        Fault::Strike { act, timing: Timing::AtStart }
    }

    fn when_ready(act: Act) -> Fault {
        Fault::Strike { act, timing: Timing::WhenReady }
    }

    fn always(act: Act) -> Fault {
        Fault::Strike { act, timing: Timing::Always }
    }
}

/// Where in the conversation a fault is being committed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Nothing has been read yet.
    Start,
    /// A healthy answer is ready and has not been sent.
    Answer,
    /// Nobody is waiting for anything.
    Idle,
}

/// One commission of a fault.
struct Strike {
    moment: Moment,
    /// The line to spoil: the healthy answer, or when idle a harmless notification.
    line: String,
    /// The request being answered, or answered last.
    id: Value,
    /// Where the request's progress goes.
    token: Option<Value>,
    /// When idle, the answer that went out last.
    previous: String,
}

impl Strike {
    fn at_start() -> Strike {
        Strike { moment: Moment::Start, line: String::new(), id: Value::Null, token: None, previous: String::new() }
    }

    fn answer(message: &Message, line: String) -> Strike {
        let token = message.meta("progressToken").cloned();
        Strike { moment: Moment::Answer, line, id: message.id(), token, previous: String::new() }
    }

    fn idle(id: Value, previous: String) -> Strike {
        Strike { moment: Moment::Idle, line: frame::chatter(), id, token: None, previous }
    }

    /// Sends the healthy answer after all, if there is one.
    fn deliver(&self, server: &Server) {
        if self.moment == Moment::Answer {
            server.out.line(&self.line);
        }
    }
}

/// Reads until stdin ends.
fn serve(server: &Arc<Server>) -> ! {
    server.begin();
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        receive(server, &line);
        line.clear();
    }
    server.leave()
}

fn receive(server: &Arc<Server>, line: &[u8]) {
    let Some(message) = Message::parse(line) else {
        server.record("violation not a JSON object");
        return;
    };
    healthy::record(server.as_ref(), &message);
    if let Fault::Intercept { act, .. } = server.fault
        && act(server, &message)
    {
        return;
    }
    if message.is_response() {
        server.replied(&message);
    } else if !message.is_request() {
        healthy::notified(server, &message);
    } else if tools::takes_time(&message) || server.out.is_held() {
        // Reading goes on, or a line that never ends would hide the end of stdin.
        let server = Arc::clone(server);
        std::thread::spawn(move || answer(&server, &message));
    } else {
        answer(server, &message);
    }
}

/// Answers a request in good health, unless this is the answer to spoil.
fn answer(server: &Arc<Server>, message: &Message) {
    let Some(line) = healthy::answer(server, message) else { return };
    if !server.strikes(message) {
        server.out.line(&line);
        server.delivered(message, &line);
    } else if let Fault::Strike { act, .. } = server.fault {
        act(server, &Strike::answer(message, line));
    }
}
