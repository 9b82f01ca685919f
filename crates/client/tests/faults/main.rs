//! Every fault a server can commit over stdio and over HTTP, each in a process of its own, and the oracle that looks at what is left.
//!
//! `cargo test -p wharf-client --test faults [-- [FILTER] [--runs N] [--table FILE] [--observe]]`
//!
//! The same binary is the runner, the host under test, the faulty server (`faultd …`) and, executed once more by the
//! client itself, the guard.

#![allow(
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test runner prints, exits and may panic"
)]

mod cell;
mod exercise;
mod expect;
mod expect_http;
mod fixture;
mod runner;
mod special;

fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("faultd") => wharf_testkit::faultd::run(arguments),
        Some("cell") => std::process::exit(cell::run(arguments)),
        _ => std::process::exit(runner::run(std::env::args().skip(1))),
    }
}
