//! `wharf status`: shows the state of each server, from a running `wharf` or by connecting; with `--watch`, on every
//! change.

mod remote_status;
mod watch;

use tokio::time::Instant;
use wharf::Host;

use wharf_terminal::config_context::ADD;
use wharf_terminal::failure::{CommandEnding, CommandResult};
use wharf_terminal::managed_host::{LoadedConfig, ManagedHost};
use wharf_terminal::one_shot_host::{OneShotHost, OneShotOptions, StartMode};
use wharf_terminal::progress::{starting_text, with_startup_status};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::status::show::{document, status_table};
use wharf_terminal::status::status_rows::{StatusRow, worst_kind_of_rows};

/// Text if only other scopes have servers.
pub const NONE_IN_SCOPE: &str = "no MCP servers configured in this scope; `wharf list` shows all";

/// Show the status of the configured servers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
If a `wharf` or `wharf run` is running in this directory with the same --config, it is asked for the status. \
Otherwise, and with --connect or --watch, all enabled servers are connected in parallel; lazy ones stay \
idle unless they are named. The exit code is 0 when all of them are ready, and otherwise that of the worst: 3 \
unreachable, 7 timed out, 4 login needed, 2 configuration.

Examples:
  wharf status
  wharf status git files
  wharf status --json \\
      | jq -r '.items[] | select(.state != \"ready\") | .id'
  wharf status --watch")]
pub struct StatusArgs {
    /// Show only these servers
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Connect to all servers, including lazy ones
    #[arg(long, hide = true, conflicts_with = "watch")]
    brief: bool,
    /// Keep running: show changes and follow the configuration files
    #[arg(long)]
    watch: bool,
    /// Connect even if a wharf is running
    #[arg(long)]
    connect: bool,
    #[command(flatten)]
    pub common: CommonArgs,
}

pub async fn run(args: &StatusArgs, session: &CommandSession) -> CommandResult {
    let config = session.configuration.config()?;
    for id in &args.ids {
        session.configuration.find(id)?;
    }
    if config.servers.is_empty() && !args.watch {
        return print_no_servers(session);
    }
    if args.brief {
        return connect_all(session, &args.ids).await;
    }
    if args.watch {
        return watch::watch(session, &args.ids).await;
    }
    if !args.connect
        && let Some(known) = remote_status::fetch_status(session, config, &args.ids).await
    {
        return known.show(session, &args.ids);
    }
    connect_and_show(session, &args.ids, &args.ids, StartMode::AsConfigured).await
}

/// Connects to these servers or to all, including lazy ones, and shows their status.
///
/// # Errors
///
/// Fails if the configuration cannot be read or the output cannot be written.
pub async fn connect_all(session: &CommandSession, ids: &[String]) -> CommandResult {
    if session.configuration.config()?.servers.is_empty() {
        return print_no_servers(session);
    }
    connect_and_show(session, ids, ids, StartMode::AtOnce).await
}

/// Connects to these servers, including lazy ones, and shows their status. A disabled server is not a failure, because
/// nobody has asked for it by name.
///
/// # Errors
///
/// Fails if the configuration cannot be read or the output cannot be written.
pub async fn connect_and_list(session: &CommandSession, ids: &[String]) -> CommandResult {
    if session.configuration.config()?.servers.is_empty() {
        return print_no_servers(session);
    }
    if ids.is_empty() {
        return print_none_in_scope(session);
    }
    connect_and_show(session, ids, &[], StartMode::AtOnce).await
}

/// Connects to `ids`, or to all, and shows their status. `named` are those asked for by name.
async fn connect_and_show(
    session: &CommandSession,
    ids: &[String],
    named: &[String],
    start: StartMode,
) -> CommandResult {
    let known = LoadedConfig::resolve(session, session.configuration.config()?.clone(), ids).await;
    let with = OneShotOptions { start, ..OneShotOptions::default() };
    let hosted = OneShotHost::start(session, known.entries.clone(), with).await?;
    wait_until_settled(session, &hosted.host).await;
    let rows = ManagedHost::new(session, hosted.host, known, ids).rows();
    if session.console.mode.json {
        session.console.print_json(&document(&rows, named))?;
    } else {
        session.console.print(status_table(&rows, session.console.stdout_width()))?;
    }
    Ok(ending(&rows, named))
}

fn ending(rows: &[StatusRow], ids: &[String]) -> CommandEnding {
    worst_kind_of_rows(rows, !ids.is_empty()).map_or(CommandEnding::Fine, CommandEnding::Reported)
}

fn print_no_servers(session: &CommandSession) -> CommandResult {
    if session.console.mode.json {
        session.console.print_json(&document(&[], &[]))?;
    } else {
        session.console.say("no MCP servers configured");
        session.console.say(format_args!("hint: {ADD}"));
    }
    Ok(CommandEnding::Fine)
}

fn print_none_in_scope(session: &CommandSession) -> CommandResult {
    if session.console.mode.json {
        session.console.print_json(&document(&[], &[]))?;
    } else {
        session.console.say(NONE_IN_SCOPE);
    }
    Ok(CommandEnding::Fine)
}

/// Waits until every server is ready or has failed. A status line names the pending servers.
async fn wait_until_settled(session: &CommandSession, host: &Host) {
    let status_text = || {
        let statuses = host.status();
        let pending = statuses.iter().filter(|status| !status.state.is_settled());
        starting_text(&pending.map(|status| status.name.as_str()).collect::<Vec<_>>())
    };
    with_startup_status(session, Instant::now(), status_text, host.wait_until_settled()).await;
}
