//! Handlers of the Rust SDK in this process, called through a connection like any other server's.

#![allow(clippy::unwrap_used, reason = "a test gives up on the first surprise")]

mod asking;
mod calls;
mod faults;
mod handler;
