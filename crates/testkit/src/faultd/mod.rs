//! `faultd`: a server that is healthy except for one named fault. This module serves stdio, [`http`] serves HTTP.
//!
//! Blocking I/O: the main thread reads, slow calls run on threads, and one thread at a time writes to stdout. A fault
//! is a function, found by name in one of the family modules. This module decides *when* it occurs (see
//! [`FaultPhase`]); the families define *the effect*.

mod catalog;
mod child_processes;
mod frame;
mod framing;
mod healthy;
pub mod http;
mod lifecycle;
mod negotiation;
mod options;
mod request_context;
mod semantic_faults;
mod server;
mod stdout;
mod tools;

use std::convert::Infallible;
use std::io::BufRead;
use std::process::exit;
use std::sync::Arc;

use serde_json::Value;

pub use catalog::{ODD_RESULT, ODD_SCHEMA};
use frame::ClientMessage;
pub use options::{FaultOptions, FaultPhase, Form, HANDSHAKE, MODERN, ServerEra};
use server::StdioFaultServer;

/// Runs the fault server on this process's stdin and stdout, or over HTTP until stdin ends. `args` excludes the program
/// name.
///
/// A test binary may call this if its first argument is `faultd`, which is skipped here and repeated for every process
/// the server starts.
pub fn run(args: impl Iterator<Item = String>) -> ! {
    let mut args = args.skip_while(|first| first == "faultd").peekable();
    if args.next_if_eq("kin").is_some() {
        child_processes::run(args);
    }
    let Err(problem) = start(args);
    eprintln!("faultd: {problem}\n{}", options::USAGE);
    exit(2)
}

fn start(args: impl Iterator<Item = String>) -> Result<Infallible, String> {
    let options = FaultOptions::parse(args)?;
    match options.form {
        Form::Stdio => serve(&Arc::new(StdioFaultServer::new(options)?)),
        Form::Http | Form::Sse => http::serve(options),
    }
}

/// Reports whether `name` is a fault of `faultd stdio`.
pub fn knows(name: &str) -> bool {
    StdioFault::find(name).is_some()
}

/// The action of a fault.
type FaultAction = fn(&Arc<StdioFaultServer>, &FaultOccurrence);
/// The action of a fault on a message; returning false leaves the message to the healthy server.
type MessageInterceptor = fn(&Arc<StdioFaultServer>, &ClientMessage) -> bool;

/// A fault: its action, and its timing.
#[derive(Clone, Copy)]
enum StdioFault {
    None,
    /// Occurs in the configured phase.
    Strike {
        act: FaultAction,
        timing: FaultTiming,
    },
    /// Sees every message first. With `handshake_only`, the server otherwise behaves like one without
    /// `server/discover`.
    Intercept {
        act: MessageInterceptor,
        handshake_only: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FaultTiming {
    /// Once; phase `before` means the response to the opening request.
    Once,
    /// Once; phase `before` means before any input is read.
    AtStart,
    /// Once; phase `after` needs only an opening, not a call.
    WhenReady,
    /// Repeatedly, from the phase on.
    Always,
}

impl StdioFault {
    fn find(name: &str) -> Option<StdioFault> {
        if name == "ok" {
            return Some(StdioFault::None);
        }
        lifecycle::find(name)
            .or_else(|| framing::find(name))
            .or_else(|| semantic_faults::find(name))
            .or_else(|| negotiation::find(name))
            .or_else(|| catalog::find(name))
    }

    fn once(act: FaultAction) -> StdioFault {
        StdioFault::Strike { act, timing: FaultTiming::Once }
    }

    fn at_start(act: FaultAction) -> StdioFault {
        StdioFault::Strike { act, timing: FaultTiming::AtStart }
    }

    fn when_ready(act: FaultAction) -> StdioFault {
        StdioFault::Strike { act, timing: FaultTiming::WhenReady }
    }

    fn always(act: FaultAction) -> StdioFault {
        StdioFault::Strike { act, timing: FaultTiming::Always }
    }
}

/// Position in the conversation at which a fault occurs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FaultMoment {
    /// Before any input was read.
    Start,
    /// A healthy response is ready and not yet sent.
    Answer,
    /// No request is pending.
    Idle,
}

/// One occurrence of a fault.
struct FaultOccurrence {
    moment: FaultMoment,
    /// The line to modify: the healthy response, or when idle a harmless notification.
    line: String,
    /// Id of the request being answered, or answered last.
    id: Value,
    /// Progress token of the request.
    token: Option<Value>,
    /// When idle, the last response sent.
    previous: String,
}

impl FaultOccurrence {
    fn at_start() -> FaultOccurrence {
        FaultOccurrence {
            moment: FaultMoment::Start,
            line: String::new(),
            id: Value::Null,
            token: None,
            previous: String::new(),
        }
    }

    fn answer(message: &ClientMessage, line: String) -> FaultOccurrence {
        let token = message.meta("progressToken").cloned();
        FaultOccurrence { moment: FaultMoment::Answer, line, id: message.id(), token, previous: String::new() }
    }

    fn idle(id: Value, previous: String) -> FaultOccurrence {
        FaultOccurrence { moment: FaultMoment::Idle, line: frame::harmless_notification(), id, token: None, previous }
    }

    /// Sends the healthy response, if there is one.
    fn deliver(&self, server: &StdioFaultServer) {
        if self.moment == FaultMoment::Answer {
            server.out.line(&self.line);
        }
    }
}

/// Reads until stdin ends.
fn serve(server: &Arc<StdioFaultServer>) -> ! {
    server.begin();
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        receive(server, &line);
        line.clear();
    }
    server.leave()
}

fn receive(server: &Arc<StdioFaultServer>, line: &[u8]) {
    let Some(message) = ClientMessage::parse(line) else {
        server.record("violation not a JSON object");
        return;
    };
    healthy::record(server.as_ref(), &message);
    if let StdioFault::Intercept { act, .. } = server.fault
        && act(server, &message)
    {
        return;
    }
    if message.is_response() {
        server.on_reply(&message);
    } else if !message.is_request() {
        healthy::on_notification(server, &message);
    } else if tools::takes_time(&message) || server.out.is_held() {
        // Answer on a thread: while another thread holds stdout, this one must keep reading to notice the end of stdin.
        let server = Arc::clone(server);
        std::thread::spawn(move || answer(&server, &message));
    } else {
        answer(server, &message);
    }
}

/// Answers a request, with the fault if it is due.
fn answer(server: &Arc<StdioFaultServer>, message: &ClientMessage) {
    let Some(line) = healthy::answer(server, message) else { return };
    if !server.is_fault_due(message) {
        server.out.line(&line);
        server.on_delivered(message, &line);
    } else if let StdioFault::Strike { act, .. } = server.fault {
        act(server, &FaultOccurrence::answer(message, line));
    }
}
