//! `wharf complete-names`: names for shell completion. Hidden; used by the scripts of [`super::completions`].
//!
//! No server is started or contacted: server names come from the configuration, tool names from the cached catalogs.
//! The kind of name is derived from the command definitions: an argument called `SERVER` or `ID` takes a server name,
//! one called `TOOL` a tool name, one called `SERVER.TOOL` both, one called `CLIENT` the name of another program, one
//! called `QUESTION` the number of a question, which the running gateway tells.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, Command};
use tokio::time::timeout;
use wharf_config::clients::ExternalClient;
use wharf_config::{Config, load};
use wharf_spec::Environment;

use super::Cli;
use super::cached_catalog::CachedCatalog;
use super::serve::open_questions::OpenQuestions;
use crate::tool_selector::select_tool;
use wharf_terminal::command_words::{option, positional};
use wharf_terminal::config_context::config_paths;
use wharf_terminal::gateway_socket::{GatewayPlace, GatewayReply, GatewayRequest};
use wharf_terminal::session::CliContext;

/// Print names for shell completion; used by the completion scripts
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct CompleteNamesArgs {
    /// Words before the one being completed, without `wharf`
    #[arg(last = true)]
    words: Vec<String>,
}

/// Maximum number of names printed.
const MAX_NAMES: usize = 1_000;
/// Maximum time for a running gateway to tell its questions.
const GATEWAY_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum length of a printed name.
const MAX_NAME_LEN: usize = 128;

pub fn run(args: CompleteNamesArgs, context: CliContext) -> ExitCode {
    let Some(wanted) = completion_target(&Cli::definition(), &args.words) else { return ExitCode::SUCCESS };
    let (places, state) = config_paths(&context.config, &context.environment);
    let names = match wanted {
        CompletionTarget::Questions => question_numbers(&context.environment, state.as_deref()),
        wanted => wanted.names(&load(&places, &context.environment), state.as_deref()),
    };
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
    /// Servers, and their tools as `server.tool`.
    ServersAndTools,
    /// Arguments of the tool that these words of a call select, as `name=`.
    Arguments(Vec<String>),
    /// Other programs.
    Clients,
    /// Questions of a running gateway.
    Questions,
    /// Tools of one server, or of all servers.
    Tools(Option<String>),
}

/// Determines the kind of name at the cursor. `None` if no name is expected.
fn completion_target(root: &Command, words: &[String]) -> Option<CompletionTarget> {
    let mut command = root;
    let mut server = None;
    let mut position = 0;
    let mut typed = Vec::new();
    // Bash splits words at `=`: after it follows a value.
    if words.last().is_some_and(|word| word == "=") {
        return None;
    }
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if let Some(option) = word.strip_prefix('-').and_then(|_| option(root, command, word)) {
            let Some(_value) = words.next() else { return target_of_argument(option, &server) };
        } else if word.starts_with('-') {
            // A switch, an option with its value, or an unknown option.
        } else if let Some(inner) = command.find_subcommand(word) {
            (command, position) = (inner, 0);
        } else {
            let target = target_at_position(command, position, &None);
            let is_server = matches!(target, Some(CompletionTarget::Servers | CompletionTarget::ServersAndTools));
            server = is_server.then(|| word.clone()).or(server);
            typed.push(word.clone());
            position += 1;
        }
    }
    match (command.get_name(), position) {
        ("call", 1..) => Some(CompletionTarget::Arguments(typed)),
        _ => target_at_position(command, position, &server),
    }
}

/// Returns the kind of name at a position. `call`, `read` and `prompt` parse their words themselves, so their arguments
/// have no telling names.
fn target_at_position(command: &Command, position: usize, server: &Option<String>) -> Option<CompletionTarget> {
    match (command.get_name(), position) {
        ("call", 0) => Some(CompletionTarget::ServersAndTools),
        ("read" | "prompt" | "release", 0) => Some(CompletionTarget::Servers),
        ("release", 1) => Some(CompletionTarget::Tools(server.clone())),
        _ => target_of_argument(positional(command, position)?, server),
    }
}

fn target_of_argument(argument: &Arg, server: &Option<String>) -> Option<CompletionTarget> {
    let given = argument.get_value_names().and_then(|names| names.first()).map(|name| name.to_string());
    match given.unwrap_or_else(|| argument.get_id().as_str().to_uppercase()).as_str() {
        "SERVER" | "SERVERS" | "ID" => Some(CompletionTarget::Servers),
        "TOOL" => Some(CompletionTarget::Tools(server.clone())),
        "SERVER.TOOL" => Some(CompletionTarget::Tools(None)),
        "CLIENT" => Some(CompletionTarget::Clients),
        "QUESTION" => Some(CompletionTarget::Questions),
        _ => None,
    }
}

impl CompletionTarget {
    fn names(&self, config: &Config, state: Option<&Path>) -> Vec<String> {
        let servers = || config.servers.iter().map(|server| server.name.as_str());
        let joined_tools = || {
            servers()
                .flat_map(|server| cached_tools(state, server).into_iter().map(move |tool| format!("{server}.{tool}")))
        };
        match self {
            Self::Servers => servers().map(str::to_owned).collect(),
            Self::ServersAndTools => servers().map(str::to_owned).chain(joined_tools()).collect(),
            Self::Tools(Some(server)) => cached_tools(state, server),
            Self::Tools(None) => joined_tools().collect(),
            Self::Arguments(words) => argument_names(words, &servers().collect::<Vec<_>>(), state),
            // Their gateway is asked instead of the configuration.
            Self::Questions => Vec::new(),
            Self::Clients => ExternalClient::ALL.map(|client| client.name().to_owned()).to_vec(),
        }
    }
}

/// Asks the running gateway for the numbers of its questions.
fn question_numbers(environment: &Environment, state: Option<&Path>) -> Vec<String> {
    let asking = async {
        let place = GatewayPlace::for_environment(environment, state)?;
        let asked = timeout(GATEWAY_TIMEOUT, place.request(GatewayRequest::Questions { id: None })).await.ok()??;
        let GatewayReply::Done { result, .. } = asked.reply else { return None };
        serde_json::from_value::<OpenQuestions>(result).ok()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let questions = runtime.ok().and_then(|runtime| runtime.block_on(asking));
    questions.map(|questions| questions.items.into_iter().map(|item| item.id).collect()).unwrap_or_default()
}

fn cached_tools(state: Option<&Path>, server: &str) -> Vec<String> {
    let catalog = state.and_then(|state| CachedCatalog::read_newest(state, server));
    catalog.map(|catalog| catalog.tool_names().map(str::to_owned).collect()).unwrap_or_default()
}

/// Returns the names after these words of a call: the tools of a server, or the missing arguments of a tool.
fn argument_names(words: &[String], servers: &[&str], state: Option<&Path>) -> Vec<String> {
    if let [server] = words
        && servers.contains(&server.as_str())
    {
        return cached_tools(state, server);
    }
    let Ok(selected) = select_tool(words, servers, false) else { return Vec::new() };
    let owners: Vec<&str> = selected.server.map_or_else(|| servers.to_vec(), |server| vec![server]);
    let is_given = |name: &str| {
        let given = selected.rest.iter().map(|word| word.trim_start_matches('-'));
        given
            .into_iter()
            .any(|word| word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['=', ':'])))
    };
    let mut names = Vec::new();
    for catalog in owners.into_iter().filter_map(|server| CachedCatalog::read_newest(state?, server)) {
        let tool = catalog.tool(selected.tool);
        names.extend(
            tool.into_iter()
                .flat_map(|tool| tool.argument_names())
                .filter(|name| !is_given(name))
                .map(|name| format!("{name}=")),
        );
    }
    names
}

/// Reports whether a name is safe in a shell line: tool names are untrusted and must not become commands.
fn is_shell_safe(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_.-/".contains(letter);
    let name = name.strip_suffix('=').unwrap_or(name);
    name.len() <= MAX_NAME_LEN
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_target_follows_the_typed_words() {
        let server = || Arg::new("server");
        let call = Command::new("call").args([server(), Arg::new("tool"), Arg::new("rest").num_args(0..)]);
        let test = Command::new("test").arg(Arg::new("names").value_name("ID").num_args(0..));
        let show = Command::new("show").args([Arg::new("uri"), Arg::new("from").long("from").value_name("SERVER")]);
        let run = Command::new("run").args([Arg::new("tool"), Arg::new("json").long("json").num_args(0)]);
        let color = Arg::new("color").long("color").short('c').global(true);
        let mut root = Command::new("wharf").arg(color).subcommands([call, test, show, run]);
        root.build();
        let all = || Some(CompletionTarget::Tools(None));
        let call = || Some(CompletionTarget::ServersAndTools);
        let arguments =
            |words: &[&str]| Some(CompletionTarget::Arguments(words.iter().map(|word| (*word).to_owned()).collect()));
        for (typed, expected) in [
            ("", None),
            ("call", call()),
            ("--color never call", call()),
            ("-c never call", call()),
            ("call --color=never", call()),
            ("call --color", None),
            ("call north", arguments(&["north"])),
            ("call north echo", arguments(&["north", "echo"])),
            ("call north echo a = 1", arguments(&["north", "echo", "a", "=", "1"])),
            ("call north echo a =", None),
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
    fn own_commands_complete_servers_and_tools() {
        for (typed, expected) in [
            ("call", Some(CompletionTarget::ServersAndTools)),
            ("call --json north", Some(CompletionTarget::Arguments(vec!["north".to_owned()]))),
            ("import", Some(CompletionTarget::Clients)),
            ("export", Some(CompletionTarget::Clients)),
            ("questions", Some(CompletionTarget::Questions)),
            ("answer", Some(CompletionTarget::Questions)),
            ("answer 0a1b2c", None),
            ("read", Some(CompletionTarget::Servers)),
            ("prompt", Some(CompletionTarget::Servers)),
            ("tools", Some(CompletionTarget::Servers)),
            ("get", Some(CompletionTarget::Servers)),
            ("why", Some(CompletionTarget::Servers)),
            ("status north", Some(CompletionTarget::Servers)),
            ("run --allow", Some(CompletionTarget::Tools(None))),
            ("approve --tool", Some(CompletionTarget::Tools(None))),
        ] {
            let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
            assert_eq!(completion_target(&Cli::definition(), &words), expected, "{typed}");
        }
    }

    #[test]
    fn shell_unsafe_names_are_not_completed() {
        for name in ["echo", "north.echo", "a_b-c/2", "text="] {
            assert!(is_shell_safe(name), "{name}");
        }
        for name in ["", "=", "a=b", "-rf", "$(reboot)", "a b", "a;b", "é", "a\nb", &"x".repeat(MAX_NAME_LEN + 1)] {
            assert!(!is_shell_safe(name), "{name:?}");
        }
    }

    /// U10.
    #[test]
    fn arguments_are_those_of_the_selected_tool() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("catalogs")).unwrap();
        let schema = r#"{"properties":{"text":{},"count":{}}}"#;
        let catalog = format!(r#"{{"schema":1,"tools":[{{"name":"echo","inputSchema":{schema}}},{{"name":"add"}}]}}"#);
        std::fs::write(folder.path().join("catalogs/north-0a1b.json"), catalog).unwrap();
        for (typed, expected) in [
            ("north", &["echo", "add"][..]),
            ("north echo", &["count=", "text="]),
            ("north.echo", &["count=", "text="]),
            ("north.echo text=a", &["count="]),
            ("north.echo text = a", &["count="]),
            ("echo", &["count=", "text="]),
            ("north.add", &[]),
            ("south.echo", &[]),
        ] {
            let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
            assert_eq!(argument_names(&words, &["north"], Some(folder.path())), expected, "{typed}");
        }
    }
}
