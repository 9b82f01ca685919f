//! `/mcp`: shows and controls the servers, one module per subcommand.

mod boxed_table;
mod debug;
mod details;
mod release;
mod stats;
mod status;
mod switch;
mod tool_overview;

use clap::Subcommand;
use wharf_spec::ServerName;

use super::grammar::{ServerFilterArgs, grammar};
use super::{CommandContext, ReplAction};
use wharf_terminal::config_context::{ADD, usage_refusal};
use wharf_terminal::failure::{Failure, FailureKind};
use wharf_terminal::servers::printable_word;
use wharf_terminal::suggestions::suggestion;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    override_usage = "mcp [SERVER]\n       /mcp COMMAND",
    after_help = "\
Use `/mcp show SERVER` for a server named like a command. Changes made here apply to this session only. Use \
`wharf enable`, `wharf disable` or the files for permanent changes.

Examples:
  /mcp
  /mcp github
  /mcp list-tools github
  /mcp reconnect github"
)]
pub struct McpArgs {
    /// Server to show (default: all)
    #[arg(value_name = "SERVER")]
    words: Vec<String>,
    #[command(subcommand)]
    command: Option<McpCommand>,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Show all servers and their state
    Status,
    /// Show the details of a server
    Show(McpServerArg),
    /// List tools by declared effect, including withheld ones
    ListTools(ServerFilterArgs),
    /// Review a withheld tool and release it
    Release(ReleaseCommandArgs),
    /// Connect a server
    Connect(McpServerArg),
    /// Disconnect a server until the next connect
    Disconnect(McpServerArg),
    /// Reconnect a server
    Reconnect(McpServerArg),
    /// Enable a server for this session
    Enable(McpServerArg),
    /// Disable a server for this session
    Disable(McpServerArg),
    /// Log in to a server
    Auth(McpServerArg),
    /// Reload the configuration
    Reload,
    /// Show call counts and durations for this session
    Stats(ServerFilterArgs),
    /// Show the details of a server and its connection steps
    Debug(McpServerArg),
}

/// Arguments of `release`.
#[derive(Debug, clap::Args)]
struct ReleaseCommandArgs {
    /// The server
    #[arg(value_name = "SERVER")]
    server: String,
    /// The tool's name at the server
    #[arg(value_name = "TOOL")]
    tool: String,
}

/// Argument that names one server.
#[derive(Debug, clap::Args)]
struct McpServerArg {
    /// The server
    #[arg(value_name = "SERVER")]
    server: String,
}

pub async fn run(args: McpArgs, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let Some(command) = args.command else { return show_by_words(&args.words, context) };
    match command {
        McpCommand::Status => status::run(context),
        McpCommand::Show(McpServerArg { server }) => details::run(&server, context),
        McpCommand::ListTools(ServerFilterArgs { server }) => tool_overview::run(server.as_deref(), context),
        McpCommand::Release(ReleaseCommandArgs { server, tool }) => release::run(&server, &tool, context),
        McpCommand::Connect(McpServerArg { server }) => switch::connect(&server, context).await,
        McpCommand::Disconnect(McpServerArg { server }) => switch::disconnect(&server, context).await,
        McpCommand::Reconnect(McpServerArg { server }) => switch::reconnect(&server, context).await,
        McpCommand::Enable(McpServerArg { server }) => switch::enable(&server, context).await,
        McpCommand::Disable(McpServerArg { server }) => switch::disable(&server, context).await,
        McpCommand::Auth(McpServerArg { server }) => switch::log_in(&server, context),
        McpCommand::Reload => Ok(ReplAction::Reload),
        McpCommand::Stats(ServerFilterArgs { server }) => stats::run(server.as_deref(), context),
        McpCommand::Debug(McpServerArg { server }) => debug::run(&server, context),
    }
}

/// Handles `/mcp` and `/mcp SERVER`. Several words are an unknown command.
fn show_by_words(words: &[String], context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    match words {
        [] => status::run(context),
        [server] if context.managed_host.loaded_config().config.server(server).is_some() => {
            details::run(server, context)
        }
        [word, ..] => Err(unknown_word(word, context)),
    }
}

/// Returns the failure for a word that is neither a server nor a command.
fn unknown_word(word: &str, context: &CommandContext<'_>) -> Failure {
    let (known, grammar) = (context.managed_host.loaded_config(), grammar());
    let servers = known.config.servers.iter().map(|server| server.name.as_str());
    let commands = grammar.find_subcommand("mcp").into_iter().flat_map(clap::Command::get_subcommands);
    let names: Vec<&str> = servers.chain(commands.map(clap::Command::get_name)).collect();
    Failure::usage(format_args!("unknown server or command `{}`", printable_word(word)))
        .with_hint(suggestion(word, names.into_iter()))
}

/// Resolves a server name.
///
/// # Errors
///
/// Fails with a suggestion if no server has the name.
pub fn resolve_configured(word: &str, context: &CommandContext<'_>) -> Result<ServerName, Failure> {
    if let Ok(status) = context.managed_host.host.status_of(word) {
        return Ok(status.name);
    }
    let known = context.managed_host.loaded_config();
    known.config.server(word).map(|server| server.name.clone()).ok_or_else(|| {
        let failure = Failure::usage(format_args!("no server named `{}`", printable_word(word)));
        match &known.config.servers[..] {
            [] => failure.with_hint(ADD),
            servers => failure.with_hint(suggestion(word, servers.iter().map(|server| server.name.as_str()))),
        }
    })
}

/// Resolves the name of a server that is in the host.
///
/// # Errors
///
/// Returns the reason if the host does not have the server.
pub fn resolve_in_host(word: &str, context: &CommandContext<'_>) -> Result<ServerName, Failure> {
    let name = resolve_configured(word, context)?;
    if context.managed_host.host.status_of(name.as_str()).is_ok() {
        return Ok(name);
    }
    let known = context.managed_host.loaded_config();
    if let Some((_, failure)) = known.failures.iter().find(|(id, _)| id == name.as_str()) {
        return Err(Failure::clone(failure));
    }
    let server = known.config.server(name.as_str());
    if server.is_some_and(|server| context.managed_host.is_pending(server)) {
        let failure = Failure::new(FailureKind::Unreachable, "the server's secrets are still being looked up");
        return Err(failure.about_server(name.as_str()).with_hint("try again in a moment"));
    }
    let refused = server.and_then(usage_refusal);
    Err(refused.unwrap_or_else(|| Failure::usage("the server is not part of this session").about_server(name.as_str())))
}
