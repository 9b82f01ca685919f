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
use super::{Post, Wish};
use wharf_terminal::configured::{ADD, refusal};
use wharf_terminal::failure::{Failure, Kind};
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
pub struct Args {
    /// The server to show; without it, all of them
    #[arg(value_name = "SERVER")]
    words: Vec<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show all servers and how they are
    Status,
    /// Show everything about a server
    Show(One),
    /// List what the servers' tools may do, and what is withheld
    ListTools(ServerFilterArgs),
    /// Connect a server
    Connect(One),
    /// Disconnect a server until it is connected again
    Disconnect(One),
    /// Disconnect a server and connect it again
    Reconnect(One),
    /// Switch a server on for this session
    Enable(One),
    /// Switch a server off for this session
    Disable(One),
    /// Log in at a server
    Auth(One),
    /// Look at the configuration again
    Reload,
    /// Show how often tools were called in this session, and how long that took
    Stats(ServerFilterArgs),
    /// Show everything about a server, and how connecting to it went
    Debug(One),
}

/// Argument that names one server.
#[derive(Debug, clap::Args)]
struct One {
    /// The server
    #[arg(value_name = "SERVER")]
    server: String,
}

pub async fn run(args: Args, post: &Post<'_>) -> Result<Wish, Failure> {
    let Some(command) = args.command else { return by_words(&args.words, post) };
    match command {
        Command::Status => status::run(post),
        Command::Show(One { server }) => details::run(&server, post),
        Command::ListTools(ServerFilterArgs { server }) => offer::run(server.as_deref(), post),
        Command::Connect(One { server }) => switch::connect(&server, post).await,
        Command::Disconnect(One { server }) => switch::disconnect(&server, post).await,
        Command::Reconnect(One { server }) => switch::reconnect(&server, post).await,
        Command::Enable(One { server }) => switch::enable(&server, post).await,
        Command::Disable(One { server }) => switch::disable(&server, post).await,
        Command::Auth(One { server }) => switch::log_in(&server, post),
        Command::Reload => Ok(Wish::Reload),
        Command::Stats(ServerFilterArgs { server }) => stats::run(server.as_deref(), post),
        Command::Debug(One { server }) => debug::run(&server, post),
    }
}

/// Handles `/mcp` and `/mcp SERVER`. Several words are an unknown command.
fn by_words(words: &[String], post: &Post<'_>) -> Result<Wish, Failure> {
    match words {
        [] => status::run(post),
        [server] if post.fleet.known().config.server(server).is_some() => details::run(server, post),
        [word, ..] => Err(neither(word, post)),
    }
}

/// Returns the failure for a word that is neither a server nor a command.
fn neither(word: &str, post: &Post<'_>) -> Failure {
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
pub fn known(word: &str, post: &Post<'_>) -> Result<ServerName, Failure> {
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
pub fn kept(word: &str, post: &Post<'_>) -> Result<ServerName, Failure> {
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
        let failure = Failure::of(Kind::Unreachable, "its secrets are still being looked up");
        return Err(failure.about(name.as_str()).hint("try again in a moment"));
    }
    let refused = server.and_then(refusal);
    Err(refused.unwrap_or_else(|| Failure::usage("it is not among the servers of this session").about(name.as_str())))
}
