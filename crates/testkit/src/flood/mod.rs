//! `flood`: a server that sends excessive amounts of one kind of data, over stdio, Streamable HTTP or HTTP+SSE.
//!
//! Blocking I/O and threads, as in [`crate::faultd`]. Listings fill the limits documented by Wharf or are endless,
//! results and errors have the maximum message size, and unprompted messages are sent without pause.

mod http;
mod messages;

use std::io::{BufRead, Write};
use std::process::exit;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use messages::{answer, unprompted_messages};

/// The kind of data sent in large amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloodKind {
    /// None: a healthy server with one tool.
    Quiet,
    /// Listings: tools and prompts up to the limits, the others endless; all change repeatedly.
    Lists,
    Results,
    Notifications,
    Errors,
    /// Stdio only.
    Stderr,
    All,
}

impl FloodKind {
    /// Every kind that floods.
    pub const FLOODS: [FloodKind; 6] = [
        FloodKind::Lists,
        FloodKind::Results,
        FloodKind::Notifications,
        FloodKind::Errors,
        FloodKind::Stderr,
        FloodKind::All,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            FloodKind::Quiet => "quiet",
            FloodKind::Lists => "lists",
            FloodKind::Results => "results",
            FloodKind::Notifications => "notifications",
            FloodKind::Errors => "errors",
            FloodKind::Stderr => "stderr",
            FloodKind::All => "all",
        }
    }

    fn find(name: &str) -> Option<FloodKind> {
        [FloodKind::Quiet].into_iter().chain(FloodKind::FLOODS).find(|kind| kind.as_str() == name)
    }

    fn includes(self, kind: FloodKind) -> bool {
        self == kind || self == FloodKind::All
    }
}

/// Runs the server on this process's stdin and stdout, or over HTTP until stdin ends: `stdio|http|sse KIND [MARK]`.
/// Over HTTP the first line of stdout is its address.
pub fn run(mut args: impl Iterator<Item = String>) -> ! {
    let form = args.next().unwrap_or_default();
    let Some(kind) = args.next().as_deref().and_then(FloodKind::find) else {
        eprintln!("usage: flood stdio|http|sse quiet|lists|results|notifications|errors|stderr|all [MARK]");
        exit(2)
    };
    match form.as_str() {
        "http" => http::serve(kind, http::Form::Streamable),
        "sse" => http::serve(kind, http::Form::Sse),
        _ => serve_stdio(kind),
    }
}

fn serve_stdio(kind: FloodKind) -> ! {
    if kind.includes(FloodKind::Stderr) {
        std::thread::spawn(flood_stderr);
    }
    let mut is_flooding = false;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if let Some(answer) = answer(kind, &message, "2025-11-25") {
            write_line(&answer);
        }
        if message["method"] == "notifications/initialized" && !std::mem::replace(&mut is_flooding, true) {
            std::thread::spawn(move || send_unprompted(kind, &write_line));
        }
    }
    exit(0)
}

fn write_line(line: &str) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()).is_ok()
}

/// Sends unprompted messages until a send fails.
fn send_unprompted(kind: FloodKind, send: &dyn Fn(&str) -> bool) {
    let remarks = unprompted_messages(kind);
    while !remarks.is_empty() {
        for remark in &remarks {
            if !send(remark) {
                return;
            }
        }
        if kind == FloodKind::Lists {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn flood_stderr() {
    let long: Arc<str> = format!("{}\n", "e".repeat(200_000)).into();
    let short = "\n".repeat(50_000) + &"a line\n".repeat(10_000);
    loop {
        let mut stderr = std::io::stderr().lock();
        if stderr.write_all(long.as_bytes()).and_then(|()| stderr.write_all(short.as_bytes())).is_err() {
            return;
        }
    }
}
