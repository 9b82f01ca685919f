//! `wharf completions`.

use std::io::Write as _;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf completions bash > ~/.local/share/bash-completion/completions/wharf
  wharf completions zsh > \"${fpath[1]}/_wharf\"
  wharf completions fish > ~/.config/fish/completions/wharf.fish")]
pub struct Args {
    /// The shell to write for
    shell: Shell,
}

pub fn run(args: &Args) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "wharf", &mut script);
    let written = std::io::stdout().lock().write_all(&script);
    written.map_or_else(|error| Failure::stdout(error).kind.code().into(), |()| ExitCode::SUCCESS)
}
