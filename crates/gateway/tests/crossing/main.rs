//! Questions of servers across the eras: every kind, method, cell, transport and outcome, and the cases around them.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod client;
mod fixture;
mod matrix;
mod permission;
mod questions;
mod server;
