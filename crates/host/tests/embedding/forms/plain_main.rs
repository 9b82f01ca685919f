//! Embeds a host in a program without macros. Started by the test `embedding`.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program prints and reads its environment")]

mod session;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Runtime::new()?.block_on(session::run())
}
