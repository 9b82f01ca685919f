//! Fake servers with named faults, and the oracle that checks the client's reaction.
//!
//! This crate does not use wharf's own protocol types: the servers write their JSON themselves, so that one bug cannot
//! affect both sides.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a fault server prints, exits and reads its environment"
)]

pub mod authd;
pub mod cases;
pub mod faultd;
pub mod flood;
pub mod http_cases;
pub mod modeld;
pub mod oracle;
pub mod pty;
pub mod repl;
mod request;
pub mod test_home;
pub mod torture;
pub mod transport_faults;
