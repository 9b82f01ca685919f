//! Shared parts of the benchmark clients: flags, the closed loop that drives them, and the line of figures they print.
//! Also the responses of the echo servers.
//!
//! A Rust client connects in its own way, then passes [`run_closed_loop`] a closure that makes one call. The scripts
//! under `clients/` implement the same loop in their languages.

#![allow(
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "benchmark tools: they print, read their arguments and panic on errors"
)]

mod closed_loop;
pub mod echo;
mod inline;
pub mod load;
mod options;
mod report;
mod server;
mod server_kinds;
mod template;
mod wharf_client_loop;

pub use closed_loop::{block_on, run_closed_loop};
pub use inline::InlineEcho;
pub use options::{BenchOptions, LocalServerKind, ResponseForm, RuntimeFlavour};
pub use report::{BenchReport, BenchStopwatch, Measurements, WARM_UP, nanoseconds};
pub use server::{HttpEchoServer, ServerTraffic};
pub use server_kinds::{
    ServerKind, allow_rule, good_tool, host_builder, server_entry, server_name, small_arguments, wait_until_answered,
};
pub use template::Template;
pub use wharf_client_loop::{LastSentMessage, measure_wharf, print_call_template};
