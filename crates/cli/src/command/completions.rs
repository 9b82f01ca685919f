//! `wharf completions`: clap's completion script, extended with lines that ask `wharf` for names.
//!
//! Server and tool names are looked up at completion time by [`super::complete_names`]. Clap's own dynamic completion
//! is unstable and would start a process at every key press; here only names need one.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

use super::Cli;
use wharf_terminal::failure::Failure;
use wharf_terminal::session::CliContext;

/// Print a shell's completion script
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Bash, zsh and fish also complete configured servers, their tools and the arguments of these as last listed. They ask \
the `wharf` in PATH, never the file that is typed.

Examples:
  wharf completions bash \\
      > ~/.local/share/bash-completion/completions/wharf
  wharf completions zsh > \"${fpath[1]}/_wharf\"
  wharf completions fish \\
      > ~/.config/fish/completions/wharf.fish")]
pub struct CompletionsArgs {
    /// Shell to write the script for
    shell: Shell,
}

pub fn run(args: CompletionsArgs, _: CliContext) -> ExitCode {
    let script = script(args.shell);
    let written = std::io::stdout().lock().write_all(script.as_bytes());
    written.map_or_else(|error| Failure::from_stdout_error(error).kind.code().into(), |()| ExitCode::SUCCESS)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible_commands(), "wharf", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => script + BASH,
        Shell::Fish => script + FISH,
        Shell::Zsh => insert_zsh_names(&script),
        _ => script,
    }
}

/// Returns the command definition without hidden commands, which clap would complete as well.
fn visible_commands() -> Command {
    let all = Cli::definition();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let bare = Command::new("wharf").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    bare.args(all.get_arguments().cloned()).subcommands(shown)
}

/// Names are read line by line and never expanded: the shell must not execute a server's name. Each script asks the
/// program in an absolute directory of PATH: the typed one may belong to a repository that nobody has reviewed.
const BASH: &str = r#"
_wharf_named() {
    local name program word="${COMP_WORDS[COMP_CWORD]}"
    local -a names=()
    program="$(type -P wharf)"
    [[ "$program" == /* ]] || program=true
    [[ "$word" == "=" ]] && word=""
    while IFS= read -r name; do
        [[ "$name" == "$word"* ]] && names+=("$name")
    done < <("$program" complete-names -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
    if (( ${#names[@]} )); then
        COMPREPLY=("${names[@]}")
        [[ "${names[0]}" == *= ]] && compopt -o nospace 2>/dev/null
    else
        _wharf "$@"
    fi
}

complete -F _wharf_named -o bashdefault -o default wharf
"#;

const FISH: &str = r#"
function __fish_wharf_names
    set -l words (commandline -opc)
    set -l program (command -s wharf)
    string match -q '/*' -- "$program"; or return
    $program complete-names -- $words[2..-1] 2>/dev/null
end

complete -c wharf -a "(__fish_wharf_names)"
"#;

const ZSH: &str = r#"
functions -c _wharf _wharf_options
_wharf() {
    local -a names values
    local program="$(whence -p wharf)"
    if [[ "$program" == /* ]]; then
        names=("${(@f)$("$program" complete-names -- "${(@)words[2,CURRENT-1]}" 2>/dev/null)}")
        values=(${(M)names:#*=})
        names=(${names:#*=})
        [[ -n "$names" ]] && compadd -a names
        [[ -n "$values" ]] && compadd -S '' -a values
    fi
    _wharf_options "$@"
}
"#;

/// Inserts the name lookup before the last lines of clap's script, which must stay last: they start or register
/// completion.
fn insert_zsh_names(script: &str) -> String {
    let end = script.rfind("\nif [ \"$funcstack[1]\"").unwrap_or(script.len());
    let (functions, end) = script.split_at(end);
    format!("{functions}{ZSH}{end}")
}
