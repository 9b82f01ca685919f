//! What servers send without end is bounded in total: the memory of the host, and the calls of other servers beside it.
//!
//! `cargo test -p wharf --test memory [-- [FILTER] [--runs SECONDS] [--table FILE]]`
//!
//! The same binary is the runner, the host under test (`host …`), the flooding server (`flood …`), the unconnected process
//! that uses as much processor time (`burn`) and, executed once more by the client itself, the guard.

#![allow(
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test runner prints, exits, reads its environment and may panic"
)]

mod burn;
mod cell;
mod host;
mod process;
mod runner;

fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("flood") => wharf_testkit::flood::run(arguments),
        Some("host") => host::run(&arguments.collect::<Vec<_>>()),
        Some("burn") => burn::run(),
        _ => std::process::exit(runner::run(std::env::args().skip(1))),
    }
}
