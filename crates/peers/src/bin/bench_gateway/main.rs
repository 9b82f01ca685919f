//! Load on a gateway, and what is around it: `load` calls, `hop` is the least a gateway must do, `server` is a server
//! that writes down every call, `client` is a client on the Rust SDK.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark tool: it prints, reads its arguments and panics on errors"
)]

mod client;
mod hop;
mod load;
mod server;

fn main() {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let words: Vec<String> = words.collect();
    match command.as_str() {
        "client" => client::run(&words),
        "load" => load::run(&words),
        "hop" => hop::run(&words),
        "server" => server::run(&words),
        _ => {
            eprintln!("usage: bench-gateway client|load|hop|server ...");
            std::process::exit(2);
        }
    }
}

/// Returns the value after a flag.
fn value<'a>(words: &'a [String], flag: &str) -> Option<&'a str> {
    let place = words.iter().position(|word| word == flag)?;
    words.get(place + 1).map(String::as_str)
}
