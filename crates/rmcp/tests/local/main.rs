//! Handlers of the Rust SDK in this process, called through a connection like any other server's.

#![allow(clippy::unwrap_used, reason = "a test panics on errors")]

mod asking;
mod calls;
mod faults;
mod handler;
