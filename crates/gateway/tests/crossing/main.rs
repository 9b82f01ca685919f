//! What crosses the eras: questions of every kind, method, cell, transport and outcome, and every other row of the table.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod any_client;
mod client;
mod feature_server;
mod fixture;
mod matrix;
mod permission;
mod questions;
mod rows;
mod server;
mod tasks;
