//! The API in a separate process: prints the address as one line of JSON, then reads one command per line.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use super::{Modeld, Script};

/// Runs until standard input ends. The script is the named file, or the first line of standard input. Each command is
/// answered with one line of JSON: `requests`, `refusals`, `open GATE`.
pub fn run(mut words: impl Iterator<Item = String>) -> io::Result<()> {
    let mut lines = io::stdin().lock().lines();
    let script = match words.next() {
        Some(file) => std::fs::read_to_string(file)?,
        None => lines.next().transpose()?.unwrap_or_default(),
    };
    let script: Script = serde_json::from_str(&script)?;
    let modeld = Modeld::start(script)?;
    print_line(&json!({ "url": modeld.url() }))?;
    for line in lines {
        print_line(&run_command(&modeld, &line?))?;
    }
    Ok(())
}

fn run_command(modeld: &Modeld, line: &str) -> Value {
    let (command, argument) = line.split_once(' ').unwrap_or((line, ""));
    match command {
        "requests" => json!(modeld.requests()),
        "refusals" => json!(modeld.refusals()),
        "open" => {
            modeld.open_gate(argument);
            json!({})
        }
        _ => json!({ "error": format!("no such command: {command}") }),
    }
}

fn print_line(document: &Value) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{document}")?;
    output.flush()
}
