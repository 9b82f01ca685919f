//! `/mcp`: shows and controls the servers, one module per subcommand.

mod boxed;
mod debug;
mod details;
mod offer;
mod stats;
mod status;
mod switch;

use clap::Subcommand;
use wharf_spec::ServerName;

use super::grammar::{ServerFilterArgs, grammar};
use super::{CommandContext, ReplAction};
use wharf_terminal::configured::{ADD, refusal};
use wharf_terminal::failure::{Failure, FailureKind};
use wharf_terminal::nearest::suggestion;
use wharf_terminal::servers::shown_word;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    override_usage = "mcp [SERVER]\n       /mcp COMMAND",
    after_help = "\
A server whose name is that of a command is shown by `/mcp show SERVER`. What is switched or connected here holds for
this session; `wharf enable`, `wharf disable` and the files are for good.

Examples:
  /mcp
  /mcp github
  /mcp list-tools github
  /mcp reconnect github"
)]
pub struct McpArgs {
    /// The server to show; without it, all of them
    #[arg(value_name = "SERVER")]
    words: Vec<String>,
    #[command(subcommand)]
    command: Option<McpCommand>,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Show all servers and how they are
    Status,
    /// Show everything about a server
    Show(McpServerArg),
    /// List what the servers' tools may do, and what is withheld
    ListTools(ServerFilterArgs),
    /// Connect a server
    Connect(McpServerArg),
    /// Disconnect a server until it is connected again
    Disconnect(McpServerArg),
    /// Disconnect a server and connect it again
    Reconnect(McpServerArg),
    /// Switch a server on for this session
    Enable(McpServerArg),
    /// Switch a server off for this session
    Disable(McpServerArg),
    /// Log in at a server
    Auth(McpServerArg),
    /// Look at the configuration again
    Reload,
    /// Show how often tools were called in this session, and how long that took
    Stats(ServerFilterArgs),
    /// Show everything about a server, and how connecting to it went
    Debug(McpServerArg),
}

/// Argument that names one server.
#[derive(Debug, clap::Args)]
struct McpServerArg {
    /// The server
    #[arg(value_name = "SERVER")]
    server: String,
}

pub async fn run(args: McpArgs, post: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let Some(command) = args.command else { return by_words(&args.words, post) };
    match command {
        McpCommand::Status => status::run(post),
        McpCommand::Show(McpServerArg { server }) => details::run(&server, post),
        McpCommand::ListTools(ServerFilterArgs { server }) => offer::run(server.as_deref(), post),
        McpCommand::Connect(McpServerArg { server }) => switch::connect(&server, post).await,
        McpCommand::Disconnect(McpServerArg { server }) => switch::disconnect(&server, post).await,
        McpCommand::Reconnect(McpServerArg { server }) => switch::reconnect(&server, post).await,
        McpCommand::Enable(McpServerArg { server }) => switch::enable(&server, post).await,
        McpCommand::Disable(McpServerArg { server }) => switch::disable(&server, post).await,
        McpCommand::Auth(McpServerArg { server }) => switch::log_in(&server, post),
        McpCommand::Reload => Ok(ReplAction::Reload),
        McpCommand::Stats(ServerFilterArgs { server }) => stats::run(server.as_deref(), post),
        McpCommand::Debug(McpServerArg { server }) => debug::run(&server, post),
    }
}

/// Handles `/mcp` and `/mcp SERVER`. Several words are an unknown command.
fn by_words(words: &[String], post: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    match words {
        [] => status::run(post),
        [server] if post.fleet.known().config.server(server).is_some() => details::run(server, post),
        [word, ..] => Err(neither(word, post)),
    }
}

/// Returns the failure for a word that is neither a server nor a command.
fn neither(word: &str, post: &CommandContext<'_>) -> Failure {
    let (known, grammar) = (post.fleet.known(), grammar());
    let servers = known.config.servers.iter().map(|server| server.name.as_str());
    let commands = grammar.find_subcommand("mcp").into_iter().flat_map(clap::Command::get_subcommands);
    let names: Vec<&str> = servers.chain(commands.map(clap::Command::get_name)).collect();
    Failure::usage(format_args!("there is no server and no command `{}`", shown_word(word)))
        .hint(suggestion(word, names.into_iter()))
}

/// Resolves a server name.
///
/// # Errors
///
/// Fails with a suggestion if no server has the name.
pub fn known(word: &str, post: &CommandContext<'_>) -> Result<ServerName, Failure> {
    if let Ok(status) = post.fleet.host.status_of(word) {
        return Ok(status.name);
    }
    let known = post.fleet.known();
    known.config.server(word).map(|server| server.name.clone()).ok_or_else(|| {
        let failure = Failure::usage(format_args!("there is no server `{}`", shown_word(word)));
        match &known.config.servers[..] {
            [] => failure.hint(ADD),
            servers => failure.hint(suggestion(word, servers.iter().map(|server| server.name.as_str()))),
        }
    })
}

/// Resolves the name of a server that is in the host.
///
/// # Errors
///
/// Returns the reason if the host does not have the server.
pub fn kept(word: &str, post: &CommandContext<'_>) -> Result<ServerName, Failure> {
    let name = known(word, post)?;
    if post.fleet.host.status_of(name.as_str()).is_ok() {
        return Ok(name);
    }
    let known = post.fleet.known();
    if let Some((_, failure)) = known.failures.iter().find(|(id, _)| id == name.as_str()) {
        return Err(Failure::clone(failure));
    }
    let server = known.config.server(name.as_str());
    if server.is_some_and(|server| post.fleet.awaits(server)) {
        let failure = Failure::of(FailureKind::Unreachable, "its secrets are still being looked up");
        return Err(failure.about(name.as_str()).hint("try again in a moment"));
    }
    let refused = server.and_then(refusal);
    Err(refused.unwrap_or_else(|| Failure::usage("it is not among the servers of this session").about(name.as_str())))
}
