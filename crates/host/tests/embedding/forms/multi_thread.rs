//! Embeds a host under `#[tokio::main]`. Started by the test `embedding`.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program prints and reads its environment")]

mod session;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    session::run().await
}
