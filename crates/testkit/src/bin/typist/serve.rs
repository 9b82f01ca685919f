//! A server that only answers requests, or that also floods its output.

use std::fs;
use std::io::{BufRead, Write};
use std::thread;

use serde_json::{Value, json};

/// Number of lines between updates of the counter file.
const LINES_PER_UPDATE: usize = 1_000;

/// Behaviour of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypistServerMode {
    Calm,
    Flooding,
}

/// Answers until its input ends. The flood starts with the first `tools/list`.
pub fn serve(manner: TypistServerMode, tally: &str) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(request) = serde_json::from_str::<Value>(&line) else { continue };
        if let Some(answer) = answer(&request) {
            write_line(&answer.to_string());
        }
        if request["method"] == "tools/list" {
            write_counter(tally, 0);
            if manner == TypistServerMode::Flooding {
                flood(tally.to_owned());
            }
        }
    }
}

fn answer(request: &Value) -> Option<Value> {
    let id = request.get("id")?;
    let result = match request["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "serverInfo": {"name": "typist", "version": "1"},
            "capabilities": {"tools": {}, "logging": {}},
        }),
        "tools/list" => json!({"tools": []}),
        "ping" | "logging/setLevel" => json!({}),
        _ => return Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}})),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Writes to stdout and stderr until a write fails.
fn flood(tally: String) {
    thread::spawn(|| while writeln!(std::io::stderr(), "still here, and still talking").is_ok() {});
    thread::spawn(move || {
        let said = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {
            "level": "warning", "logger": "flood", "data": "the water rises",
        }});
        let line = said.to_string();
        for count in 1_usize.. {
            write_line(&line);
            if count.is_multiple_of(LINES_PER_UPDATE) {
                write_counter(&tally, count);
            }
        }
    });
}

/// Writes the counter file atomically: readers never see a partial number.
fn write_counter(tally: &str, count: usize) {
    let news = format!("{tally}.new");
    let _ = fs::write(&news, count.to_string()).and_then(|()| fs::rename(&news, tally));
}

fn write_line(line: &str) {
    let mut stdout = std::io::stdout().lock();
    if writeln!(stdout, "{line}").and_then(|()| stdout.flush()).is_err() {
        std::process::exit(0);
    }
}
