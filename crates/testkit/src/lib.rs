//! Fake servers that commit every fault by name, and the oracle that checks what a client did about it.
//!
//! Nothing here uses wharf's own protocol types: the server writes its JSON itself, so that one bug
//! cannot blind both sides.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a fault server prints, exits and reads its environment; that is its trade"
)]

pub mod authd;
pub mod below;
pub mod cases;
pub mod faultd;
pub mod flood;
pub mod http_cases;
pub mod modeld;
pub mod oracle;
pub mod pty;
pub mod repl;
mod request;
