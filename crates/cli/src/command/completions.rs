//! `wharf completions`: what clap writes for a shell, and a few lines more that ask `wharf` itself for names.
//!
//! The names of servers and tools are found when somebody presses the key, by [`super::complete_names`]. Clap has an engine
//! of its own for that, but not a stable one, and it would answer every key press where here only names cost a process.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

use super::Cli;
use wharf_terminal::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The names of configured servers, and of the tools they were last seen with, are completed by bash, zsh and fish.

Examples:
  wharf completions bash > ~/.local/share/bash-completion/completions/wharf
  wharf completions zsh > \"${fpath[1]}/_wharf\"
  wharf completions fish > ~/.config/fish/completions/wharf.fish")]
pub struct Args {
    /// The shell to write for
    shell: Shell,
}

pub fn run(args: &Args) -> ExitCode {
    let script = script(args.shell);
    let written = std::io::stdout().lock().write_all(script.as_bytes());
    written.map_or_else(|error| Failure::stdout(error).kind.code().into(), |()| ExitCode::SUCCESS)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(), "wharf", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => script + BASH,
        Shell::Fish => script + FISH,
        Shell::Zsh => with_names_in_zsh(&script),
        _ => script,
    }
}

/// The commands without those that are hidden, which clap would offer as well.
fn visible() -> Command {
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let bare = Command::new("wharf").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    bare.args(all.get_arguments().cloned()).subcommands(shown)
}

/// Names are read line by line and never expanded: a shell must not run what a server calls itself.
const BASH: &str = r#"
_wharf_named() {
    local name word="${COMP_WORDS[COMP_CWORD]}"
    local -a names=()
    while IFS= read -r name; do
        [[ "$name" == "$word"* ]] && names+=("$name")
    done < <("${COMP_WORDS[0]}" complete-names -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
    if (( ${#names[@]} )); then
        COMPREPLY=("${names[@]}")
    else
        _wharf "$@"
    fi
}

complete -F _wharf_named -o bashdefault -o default wharf
"#;

const FISH: &str = r#"
function __fish_wharf_names
    set -l words (commandline -opc)
    wharf complete-names -- $words[2..-1] 2>/dev/null
end

complete -c wharf -a "(__fish_wharf_names)"
"#;

const ZSH: &str = r#"
functions -c _wharf _wharf_options
_wharf() {
    local -a names
    names=("${(@f)$($words[1] complete-names -- "${(@)words[2,CURRENT-1]}" 2>/dev/null)}")
    [[ -n "$names" ]] && compadd -a names
    _wharf_options "$@"
}
"#;

/// The last lines of what clap writes begin completing or register it, and have to stay the last.
fn with_names_in_zsh(script: &str) -> String {
    let end = script.rfind("\nif [ \"$funcstack[1]\"").unwrap_or(script.len());
    let (functions, end) = script.split_at(end);
    format!("{functions}{ZSH}{end}")
}
