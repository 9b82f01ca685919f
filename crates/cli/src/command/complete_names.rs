//! `wharf complete-names`: names for shell completion. Hidden; used by the scripts of [`super::completions`].
//!
//! No server is started or contacted: server names come from the configuration, tool names from the cached catalogs.
//! The kind of name is derived from the command definitions: an argument called `SERVER` or `ID` takes a server name,
//! one called `TOOL` a tool name.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, Command};
use serde::Deserialize;
use wharf_config::{Config, load};

use super::Cli;
use wharf_terminal::command_words::{option, positional};
use wharf_terminal::config_context::config_paths;
use wharf_terminal::session::CliContext;

#[derive(Debug, clap::Args)]
pub struct CompleteNamesArgs {
    /// Words before the one being completed, without `wharf`
    #[arg(last = true)]
    words: Vec<String>,
}

/// Maximum number of names printed.
const MAX_NAMES: usize = 1_000;
/// Maximum length of a printed name.
const MAX_NAME_LEN: usize = 128;
/// Maximum size of a cached catalog file.
const MAX_CATALOG_BYTES: u64 = 8 << 20;

pub fn run(args: &CompleteNamesArgs, edge: CliContext) -> ExitCode {
    let Some(wanted) = completion_target(&Cli::definition(), &args.words) else { return ExitCode::SUCCESS };
    let (places, state) = config_paths(&edge.config, &edge.surroundings);
    let names = wanted.names(&load(&places, &edge.surroundings), state.as_deref());
    let lines: String =
        names.iter().filter(|name| is_shell_safe(name)).take(MAX_NAMES).map(|name| format!("{name}\n")).collect();
    // Ignore a shell that has closed the pipe.
    let _ = std::io::stdout().lock().write_all(lines.as_bytes());
    ExitCode::SUCCESS
}

/// Kind of name to complete.
#[derive(Debug, PartialEq)]
enum CompletionTarget {
    Servers,
    /// Tools of one server, or of all servers.
    Tools(Option<String>),
}

/// Determines the kind of name at the cursor. `None` if no name is expected.
fn completion_target(root: &Command, words: &[String]) -> Option<CompletionTarget> {
    let mut command = root;
    let mut server = None;
    let mut position = 0;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if let Some(option) = word.strip_prefix('-').and_then(|_| option(root, command, word)) {
            let Some(_value) = words.next() else { return target_of_argument(option, &server) };
        } else if word.starts_with('-') {
            // A switch, an option with its value, or an unknown option.
        } else if let Some(inner) = command.find_subcommand(word) {
            (command, position) = (inner, 0);
        } else {
            server = (target_at_position(command, position, &None) == Some(CompletionTarget::Servers))
                .then(|| word.clone())
                .or(server);
            position += 1;
        }
    }
    target_at_position(command, position, &server)
}

/// Returns the kind of name at a position. `call`, `read` and `prompt` parse their words themselves, so their arguments
/// have no telling names.
fn target_at_position(command: &Command, position: usize, server: &Option<String>) -> Option<CompletionTarget> {
    match (command.get_name(), position) {
        ("call" | "read" | "prompt", 0) => Some(CompletionTarget::Servers),
        ("call", 1) => Some(CompletionTarget::Tools(server.clone())),
        _ => target_of_argument(positional(command, position)?, server),
    }
}

fn target_of_argument(argument: &Arg, server: &Option<String>) -> Option<CompletionTarget> {
    let given = argument.get_value_names().and_then(|names| names.first()).map(|name| name.to_string());
    match given.unwrap_or_else(|| argument.get_id().as_str().to_uppercase()).as_str() {
        "SERVER" | "SERVERS" | "ID" => Some(CompletionTarget::Servers),
        "TOOL" => Some(CompletionTarget::Tools(server.clone())),
        _ => None,
    }
}

impl CompletionTarget {
    fn names(&self, config: &Config, state: Option<&Path>) -> Vec<String> {
        let servers = || config.servers.iter().map(|server| server.name.as_str());
        let tools = |server: &str| state.map(|state| cached_tools(state, server));
        match self {
            Self::Servers => servers().map(str::to_owned).collect(),
            Self::Tools(Some(server)) => tools(server).unwrap_or_default(),
            Self::Tools(None) => servers()
                .flat_map(|server| tools(server).into_iter().flatten().map(move |tool| format!("{server}.{tool}")))
                .collect(),
        }
    }
}

/// Returns a server's tools from the newest cached catalog.
fn cached_tools(state: &Path, server: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct CachedCatalog {
        tools: Vec<CachedTool>,
    }
    #[derive(Deserialize)]
    struct CachedTool {
        name: String,
    }
    let is_its = |name: &OsStr| {
        let rest = name.to_str().and_then(|name| name.strip_prefix(server)?.strip_prefix('-')?.strip_suffix(".json"));
        // A digest follows the name. The file of a longer server name has another dash.
        rest.is_some_and(|rest| !rest.contains('-'))
    };
    let files = fs::read_dir(state.join("catalogs")).into_iter().flatten().flatten();
    let files = files.filter(|file| is_its(&file.file_name()));
    let newest = files.max_by_key(|file| file.metadata().and_then(|metadata| metadata.modified()).ok());
    let read = newest.filter(|file| file.metadata().is_ok_and(|metadata| metadata.len() <= MAX_CATALOG_BYTES));
    let kept = read.and_then(|file| serde_json::from_slice::<CachedCatalog>(&fs::read(file.path()).ok()?).ok());
    kept.map(|kept| kept.tools.into_iter().map(|tool| tool.name).collect()).unwrap_or_default()
}

/// Reports whether a name is safe in a shell line: tool names are untrusted and must not become commands.
fn is_shell_safe(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_.-/".contains(letter);
    name.len() <= MAX_NAME_LEN
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_says_which_names_fit() {
        let server = || Arg::new("server");
        let call = Command::new("call").args([server(), Arg::new("tool"), Arg::new("rest").num_args(0..)]);
        let test = Command::new("test").arg(Arg::new("names").value_name("ID").num_args(0..));
        let show = Command::new("show").args([Arg::new("uri"), Arg::new("from").long("from").value_name("SERVER")]);
        let run = Command::new("run").args([Arg::new("tool"), Arg::new("json").long("json").num_args(0)]);
        let color = Arg::new("color").long("color").short('c').global(true);
        let mut root = Command::new("wharf").arg(color).subcommands([call, test, show, run]);
        root.build();
        let all = || Some(CompletionTarget::Tools(None));
        let of = |server: &str| Some(CompletionTarget::Tools(Some(server.to_owned())));
        for (typed, expected) in [
            ("", None),
            ("call", Some(CompletionTarget::Servers)),
            ("--color never call", Some(CompletionTarget::Servers)),
            ("-c never call", Some(CompletionTarget::Servers)),
            ("call --color=never", Some(CompletionTarget::Servers)),
            ("call --color", None),
            ("call north", of("north")),
            ("call north echo", None),
            ("call north echo a=1 b=2", None),
            ("test north south", Some(CompletionTarget::Servers)),
            ("show", None),
            ("show --from", Some(CompletionTarget::Servers)),
            ("show --from north", None),
            ("run", all()),
            ("run --json", all()),
            ("unknown", None),
        ] {
            let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
            assert_eq!(completion_target(&root, &words), expected, "{typed}");
        }
    }

    #[test]
    fn our_own_commands_take_names() {
        let of = |server: &str| Some(CompletionTarget::Tools(Some(server.to_owned())));
        for (typed, expected) in [
            ("call", Some(CompletionTarget::Servers)),
            ("call --json north", of("north")),
            ("call north echo", None),
            ("read", Some(CompletionTarget::Servers)),
            ("prompt", Some(CompletionTarget::Servers)),
            ("tools", Some(CompletionTarget::Servers)),
            ("get", Some(CompletionTarget::Servers)),
            ("why", Some(CompletionTarget::Servers)),
            ("status north", Some(CompletionTarget::Servers)),
        ] {
            let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
            assert_eq!(completion_target(&Cli::definition(), &words), expected, "{typed}");
        }
    }

    #[test]
    fn a_name_that_a_shell_would_read_otherwise_is_kept_back() {
        for name in ["echo", "north.echo", "a_b-c/2"] {
            assert!(is_shell_safe(name), "{name}");
        }
        for name in ["", "-rf", "$(reboot)", "a b", "a;b", "é", "a\nb", &"x".repeat(MAX_NAME_LEN + 1)] {
            assert!(!is_shell_safe(name), "{name:?}");
        }
    }

    #[test]
    fn the_newest_list_of_that_very_server_counts() {
        let folder = tempfile::tempdir().unwrap();
        let catalogs = folder.path().join("catalogs");
        fs::create_dir(&catalogs).unwrap();
        for (file, tool) in [("north-0a1b.json", "echo"), ("north-pole-0a1b.json", "drill"), ("north-0a1b.tmp", "no")] {
            fs::write(catalogs.join(file), format!(r#"{{"schema":1,"tools":[{{"name":"{tool}","x":1}}]}}"#)).unwrap();
        }
        for (server, expected) in [("north", &["echo"][..]), ("north-pole", &["drill"]), ("south", &[])] {
            assert_eq!(cached_tools(folder.path(), server), expected, "{server}");
        }
        assert!(cached_tools(Path::new("/nonexistent"), "north").is_empty());
    }
}
