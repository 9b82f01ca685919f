//! Measures the responsiveness of a program on a terminal: time to the prompt, and key-to-echo latency. Includes a
//! server that floods it meanwhile.
//!
//! `typist prompt PROGRAM HOME`, `typist keys PROGRAM HOME COUNT TALLY` and `typist request run|repl|pipe PROGRAM HOME`
//! print their measurements as a line of JSON; `typist serve calm|flooding TALLY` is an MCP server over stdio that counts its notifications in a file.

#![allow(
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a tool: it prints, exits and reads its arguments"
)]

mod request;
mod serve;

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;
use wharf_testkit::pty::{PATIENCE, Screen, Terminal};
use wharf_testkit::repl::PROMPT;

use serve::{TypistServerMode, serve};

/// Typed repeatedly; no key occurs twice in a row.
const KEYS: &str = "the quick brown fox jumps over a lazy dog ";
/// Minimum and maximum pause between two keys in milliseconds: fast, irregular typing.
const PAUSE_RANGE_MS: (u64, u64) = (15, 45);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["prompt", program, home] => measure_prompt(program, home),
        ["keys", program, home, count, tally] => measure_keys(program, home, count.parse().expect("a number"), tally),
        ["request", surface, program, home] => request::measure_first_request(surface, program, home),
        ["serve", "calm", tally] => serve(TypistServerMode::Calm, tally),
        ["serve", "flooding", tally] => serve(TypistServerMode::Flooding, tally),
        _ => panic!("typist prompt|keys|request|serve …"),
    }
}

/// Measures the milliseconds to the prompt, and to the echo of a key typed then.
fn measure_prompt(program: &str, home: &str) {
    let begun = Instant::now();
    let mut terminal = start(program, home);
    terminal.expect(PROMPT);
    let prompt = begun.elapsed();
    terminal.keys("x");
    terminal.expect_view(|screen| typed_text(screen).ends_with('x'));
    let key = begun.elapsed();
    exit_program(terminal);
    println!("{}", json!({"prompt_ms": milliseconds(prompt), "key_ms": milliseconds(key)}));
}

/// Measures the microseconds from each key to its echo, after the server has started.
fn measure_keys(program: &str, home: &str, count: usize, tally: &str) {
    let _ = fs::remove_file(tally);
    let mut terminal = start(program, home);
    terminal.expect(PROMPT);
    wait_for_counter_file(tally);
    let (begun, said) = (Instant::now(), read_counter(tally));
    let times: Vec<f64> = (0..count).map(|number| measure_key(&mut terminal, number)).collect();
    let said = (read_counter(tally) - said) as f64 / begun.elapsed().as_secs_f64();
    exit_program(terminal);
    println!("{}", json!({"keys_us": times, "said_per_second": said}));
}

fn measure_key(terminal: &mut Terminal, number: usize) -> f64 {
    let place = number % KEYS.len();
    if place == 0 {
        terminal.control('u');
        terminal.expect_view(|screen| typed_text(screen).is_empty());
    }
    sleep(pause(number));
    let line = &KEYS[..=place];
    let begun = Instant::now();
    terminal.keys(&line[place..]);
    terminal.expect_view(|screen| typed_text(screen) == line);
    begun.elapsed().as_secs_f64() * 1e6
}

/// Returns an irregular pause that is the same in every run.
fn pause(number: usize) -> Duration {
    let (shortest, longest) = PAUSE_RANGE_MS;
    Duration::from_millis(shortest + (number as u64 * 7919) % (longest - shortest))
}

/// Returns the text between the prompt and the cursor.
fn typed_text(screen: &Screen) -> String {
    let (row, column) = screen.cursor_position();
    let line = screen.contents_between(row, 0, row, column);
    line.strip_prefix(PROMPT).unwrap_or_default().to_owned()
}

fn start(program: &str, home: &str) -> Terminal {
    Terminal::start(&command(program, home))
}

fn command(program: &str, home: &str) -> Command {
    let mut command = Command::new(program);
    command.env("HOME", home).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8").current_dir(home);
    command
}

/// Clears the line and sends end of input.
fn exit_program(mut terminal: Terminal) {
    terminal.control('u');
    terminal.control('d');
    terminal.end();
}

fn wait_for_counter_file(tally: &str) {
    let until = Instant::now() + PATIENCE;
    while !fs::exists(tally).unwrap_or_default() {
        assert!(Instant::now() < until, "the server was not started");
        sleep(Duration::from_millis(10));
    }
}

fn read_counter(tally: &str) -> u64 {
    fs::read_to_string(tally).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
