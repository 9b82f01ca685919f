//! The `wharf` binary: arguments, commands and rendering.
//!
//! Only this crate prints, reads the environment and exits. The other crates receive these as values.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the command line is the one place that prints, exits and reads the environment"
)]

mod command;
mod masking;
mod panic;
mod tool_selector;

use std::process::ExitCode;

use wharf_spec::Environment;

fn main() -> ExitCode {
    if let Err(error) = wharf_client::guard::protect_memory() {
        eprintln!("warning: servers can read this program's environment and memory: {error}");
    }
    wharf_client::return_large_memory();
    panic::install_hook();
    let cli = command::Cli::parse(std::env::args_os().collect());
    let environment =
        Environment { env: std::env::vars_os().collect(), cwd: std::env::current_dir().unwrap_or_default() };
    cli.run(environment)
}
