//! Lightweight server for starting many instances at once. The first argument selects its behaviour.
//!
//! The optional second argument is a file to which each start appends a line. A healthy server has the tools `echo`,
//! `hold`, which is never answered, and `held`, which returns the number of `hold` calls.

#![allow(
    clippy::disallowed_methods,
    clippy::exit,
    clippy::unwrap_used,
    reason = "a benchmark tool: it reads its arguments, exits as asked and panics on errors"
)]

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::exit;
use std::thread;
use std::time::Duration;

use memchr::memmem;
use serde_json::{Value, json};
use wharf_peers::echo::append_response;

/// Uptime of a crashing server.
const CRASH_DELAY: Duration = Duration::from_millis(50);
/// Startup delay of a slow server.
const SLOW_START: Duration = Duration::from_secs(10);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    if let Some(file) = arguments.next() {
        let mut starts = OpenOptions::new().append(true).create(true).open(file).unwrap();
        starts.write_all(b"start\n").unwrap();
    }
    match mode.as_str() {
        "good" => serve(|| {}),
        "dead" => exit(1),
        "slow" => {
            thread::sleep(SLOW_START);
            serve(|| {});
        }
        "crashing" => serve(exit_later),
        "stillborn" => {
            thread::sleep(CRASH_DELAY);
            exit(1)
        }
        other => panic!("unknown mode {other}"),
    }
}

fn exit_later() {
    thread::spawn(|| {
        thread::sleep(CRASH_DELAY);
        exit(1)
    });
}

/// Answers line by line. `ready` runs once, after the first response.
fn serve(ready: fn()) {
    let (mut input, mut output) = (BufReader::new(std::io::stdin()), std::io::stdout());
    let mut ready = Some(ready);
    let (mut line, mut reply, mut held) = (Vec::new(), Vec::new(), 0);
    while input.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        respond(&line, &mut held, &mut reply);
        if !reply.is_empty() {
            reply.push(b'\n');
            if output.write_all(&reply).and_then(|()| output.flush()).is_err() {
                return;
            }
            ready.take().into_iter().for_each(|ready| ready());
        }
        line.clear();
        reply.clear();
    }
}

fn respond(line: &[u8], held: &mut usize, reply: &mut Vec<u8>) {
    if memmem::find(line, br#""name":"hold""#).is_some() {
        *held += 1;
    } else if memmem::find(line, br#""name":"held""#).is_some() {
        let text = json!({"type": "text", "text": held.to_string()});
        write_result(line, &json!({"resultType": "complete", "content": [text]}), reply);
    } else if memmem::find(line, br#""tools/list""#).is_some() {
        write_result(line, &tools(), reply);
    } else {
        append_response(line, reply);
    }
}

fn write_result(line: &[u8], result: &Value, reply: &mut Vec<u8>) {
    let request: Value = serde_json::from_slice(line).unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    reply.extend_from_slice(answer.to_string().as_bytes());
}

fn tools() -> Value {
    let tools = ["echo", "hold", "held"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
    json!({"resultType": "complete", "ttlMs": 600_000, "cacheScope": "private", "tools": tools})
}
