//! `wharf`: where MCP servers dock. Arguments, commands and rendering.
//!
//! Alone in printing, reading the environment and exiting: everything below gets these as values.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the command line is the one place that prints, exits and reads the environment"
)]

mod accounts;
mod age;
mod call_arguments;
mod chat;
mod clock;
mod columns;
mod command;
mod configured;
mod console;
mod content;
mod control;
mod counted;
mod denied;
mod errands;
mod failure;
mod fleet;
mod hosting;
mod log;
mod masked;
mod nearest;
mod panic;
mod probe;
mod question;
mod repl;
mod saving;
mod scope;
mod search;
mod selector;
mod servers;
mod services;
mod session;
mod sheet;
mod shown_path;
mod signals;
mod stdin;
mod style;
mod table;
mod tap;

use std::process::ExitCode;

use wharf_spec::Surroundings;

fn main() -> ExitCode {
    wharf_client::guard::run_if_asked();
    if let Err(error) = wharf_client::guard::protect_memory() {
        eprintln!("warning: servers can read this program's environment and memory: {error}");
    }
    wharf_client::return_large_memory();
    panic::explain();
    let cli = command::Cli::read(std::env::args_os().collect());
    let surroundings =
        Surroundings { env: std::env::vars_os().collect(), cwd: std::env::current_dir().unwrap_or_default() };
    cli.run(surroundings)
}
