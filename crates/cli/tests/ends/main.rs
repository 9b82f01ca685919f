//! Nothing outlives its host: many servers, every way a host can end, and a look at what is left.
//!
//! `cargo test -p wharf-cli --test ends [-- [FILTER] [--runs N] [--table FILE]]`
//!
//! The same binary is the runner and the servers (`faultd …`). The hosts are `wharf`, the client's example `embed`,
//! and that example without its guard, whose leftovers are counted and not held against it.

#![allow(
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test runner prints, exits, reads its environment and may panic"
)]

mod fleet;
mod host;
mod runner;
mod table;

fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("faultd") => wharf_testkit::faultd::run(arguments),
        _ => std::process::exit(runner::run(std::env::args().skip(1))),
    }
}
