//! `wharf status`: shows the state of each server, from a running `wharf` or by connecting; with `--watch`, on every
//! change.

mod remote_status;
mod watch;

use std::time::Instant;

use wharf::Host;

use wharf_terminal::config_context::ADD;
use wharf_terminal::failure::{CommandEnding, CommandResult};
use wharf_terminal::managed_host::{LoadedConfig, ManagedHost};
use wharf_terminal::one_shot_host::{OneShotHost, OneShotOptions, StartMode};
use wharf_terminal::probe::{self, brief_line, status_frame};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::status::show::{document, status_table};
use wharf_terminal::status::status_rows::{StatusRow, worst_kind_of_rows};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
If a `wharf` or `wharf run` is running in this directory with the same --config, it is asked for the status. \
Otherwise, and with --connect, --watch or --brief, all enabled servers are connected in parallel; lazy ones stay \
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
    /// Print one line per server
    #[arg(long, conflicts_with_all = ["watch", "json"])]
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
        return print_brief(session, &args.ids).await;
    }
    if args.watch {
        return watch::watch(session, &args.ids).await;
    }
    if !args.connect
        && let Some(known) = remote_status::fetch_status(session, config, &args.ids).await
    {
        return known.show(session, &args.ids);
    }
    let known = LoadedConfig::resolve(session, config.clone(), &args.ids).await;
    let with = OneShotOptions { start: StartMode::AsConfigured, ..OneShotOptions::default() };
    let hosted = OneShotHost::start(session, known.entries.clone(), with).await?;
    wait_until_settled(session, &hosted.host).await;
    let rows = ManagedHost::new(session, hosted.host, known, &args.ids).rows();
    if session.console.manner.json {
        session.console.print_json(&document(&rows))?;
    } else {
        session.console.print(status_table(&rows, session.console.stdout_width()))?;
    }
    Ok(ending(&rows, &args.ids))
}

fn ending(rows: &[StatusRow], ids: &[String]) -> CommandEnding {
    worst_kind_of_rows(rows, !ids.is_empty()).map_or(CommandEnding::Fine, CommandEnding::Told)
}

fn print_no_servers(session: &CommandSession) -> CommandResult {
    if session.console.manner.json {
        session.console.print_json(&document(&[]))?;
    } else {
        session.console.say("no MCP servers configured");
        session.console.say(format_args!("hint: {ADD}"));
    }
    Ok(CommandEnding::Fine)
}

/// Probes the servers and prints one line for each.
///
/// # Errors
///
/// Fails if the configuration cannot be read or the output cannot be written.
pub async fn print_brief(session: &CommandSession, ids: &[String]) -> CommandResult {
    if session.configuration.config()?.servers.is_empty() {
        return print_no_servers(session);
    }
    let looked = probe::probe_all(session).await?;
    let is_wanted = |name: &str| ids.is_empty() || ids.iter().any(|id| id == name);
    let mut kinds = Vec::new();
    for looked in looked.iter().filter(|looked| is_wanted(looked.server.name.as_str())) {
        session.console.print(format_args!("{}\n", brief_line(looked)))?;
        kinds.extend(looked.kind());
    }
    Ok(wharf_terminal::status::status_rows::worst_kind(kinds).map_or(CommandEnding::Fine, CommandEnding::Told))
}

/// Waits until every server is ready or has failed. A status line names the pending servers.
async fn wait_until_settled(session: &CommandSession, host: &Host) {
    let began = Instant::now();
    let settled = host.wait_until_settled();
    tokio::pin!(settled);
    loop {
        tokio::select! {
            biased;
            () = &mut settled => break,
            () = tokio::time::sleep(probe::TICK), if session.console.shows_status() => {
                let unsettled = |status: &&wharf::ServerStatus| !status.state.is_settled();
                let statuses = host.status();
                let names: Vec<&str> = statuses.iter().filter(unsettled).map(|status| status.name.as_str()).collect();
                session.console.show_status(&status_frame(&names, began.elapsed()));
            }
        }
    }
    session.console.clear_status();
}
