//! `wharf man`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap_mangen::Man;

use super::Cli;
use wharf_terminal::failure::{Failure, render_failure};
use wharf_terminal::session::CliContext;

/// Write the manual pages
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf man | man -l -
  wharf man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Directory to write one page per command to, created if missing; default: one page on stdout
    directory: Option<PathBuf>,
}

pub fn run(args: ManArgs, _: CliContext) -> ExitCode {
    let written = match &args.directory {
        None => print(),
        Some(directory) => write_all(directory),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            anstream::eprintln!("{}", render_failure(&failure));
            failure.kind.code().into()
        }
    }
}

fn print() -> Result<(), Failure> {
    let mut page = Vec::new();
    let rendered = Man::new(Cli::definition()).render(&mut page);
    rendered.and_then(|()| io::stdout().lock().write_all(&page)).map_err(Failure::from_stdout_error)
}

fn write_all(directory: &Path) -> Result<(), Failure> {
    let written = fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(Cli::definition(), directory));
    written.map_err(|error| {
        let shown = directory.display().to_string();
        let shown = wharf_spec::UntrustedText::new(&shown);
        Failure::other(format_args!("cannot write man pages to `{shown}`: {error}"))
            .with_hint("use a directory you can write to, such as ~/.local/share/man/man1")
    })
}
