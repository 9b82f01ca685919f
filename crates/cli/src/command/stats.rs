//! `wharf stats`: call counts, errors and latencies of tools, from the audit log.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use wharf::{PastToolCalls, past_calls};
use wharf_spec::UntrustedText;

use wharf_terminal::age::{AgeText, parse_period};
use wharf_terminal::call_numbers::{NUMBERS, stats_cells};
use wharf_terminal::clock::timestamp;
use wharf_terminal::columns::{ColumnAlignment, render_columns};
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::session::{CommandSession, JsonArgs};
use wharf_terminal::style::{NAME, paint};

/// Show call counts and latencies of tools
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Counts the calls of all processes that share this state directory, for as long as the audit log keeps them. Half \
of the calls took no longer than p50, nine of ten no longer than p90.

Examples:
  wharf stats
  wharf stats git --since 7d
  wharf stats --json | jq '.items[] | select(.errors > 0)'")]
pub struct StatsArgs {
    /// Show only these servers
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Count only calls of this period: 90s, 15m, 36h, 7d or 2w
    #[arg(long, value_name = "PERIOD", value_parser = parse_period)]
    since: Option<Duration>,
    #[command(flatten)]
    pub output: JsonArgs,
}

/// JSON document of the statistics.
#[derive(Serialize)]
struct StatsDocument<'a> {
    since: Option<String>,
    items: Vec<StatsItem<'a>>,
}

#[derive(Serialize)]
struct StatsItem<'a> {
    server: Option<&'a str>,
    tool: &'a str,
    calls: u64,
    errors: u64,
    p50_ms: u64,
    p90_ms: u64,
    p99_ms: u64,
    last_used: String,
}

pub async fn run(args: &StatsArgs, session: &CommandSession) -> CommandResult {
    let Some(state) = session.configuration.state.clone() else {
        return Err(Failure::usage("no directory for the audit log").with_hint("set HOME or XDG_STATE_HOME"));
    };
    let since = args.since.map(|period| SystemTime::now().checked_sub(period).unwrap_or(SystemTime::UNIX_EPOCH));
    let from = since.unwrap_or(SystemTime::UNIX_EPOCH);
    let read = wharf_threads::run_blocking(move || past_calls(&state, from)).await;
    let past = read
        .map_err(Failure::other)?
        .map_err(|error| Failure::other(format_args!("cannot read the audit log: {error}")))?;
    if past.unread > 0 {
        session.console.warn(format_args!("{} lines of the audit log could not be read", past.unread));
    }
    let is_wanted = |tool: &&PastToolCalls| {
        args.ids.is_empty() || tool.server.as_ref().is_some_and(|server| args.ids.contains(server))
    };
    let tools: Vec<&PastToolCalls> = past.tools.iter().filter(is_wanted).collect();
    if session.console.mode.json {
        let items = tools.into_iter().map(item).collect();
        session.console.print_document(true, &StatsDocument { since: since.map(timestamp), items })?;
    } else if tools.is_empty() {
        session.console.say("no calls recorded");
    } else {
        session.console.print(stats_table(&tools, session.console.stdout_width()))?;
    }
    Ok(CommandEnding::Fine)
}

fn item(tool: &PastToolCalls) -> StatsItem<'_> {
    let stats = &tool.stats;
    StatsItem {
        server: tool.server.as_deref(),
        tool: &stats.tool,
        calls: stats.calls,
        errors: stats.errors,
        p50_ms: stats.p50_us / 1000,
        p90_ms: stats.p90_us / 1000,
        p99_ms: stats.p99_us / 1000,
        last_used: timestamp(tool.last),
    }
}

fn stats_table(tools: &[&PastToolCalls], width: Option<usize>) -> String {
    let [calls, errors, half, most, nearly_all] = NUMBERS;
    let (server, tool) = (("  SERVER", ColumnAlignment::Left), ("TOOL", ColumnAlignment::Left));
    let head = [server, tool, calls, errors, half, most, nearly_all, ("LAST USED", ColumnAlignment::Left)];
    let rows: Vec<[String; 8]> = tools.iter().map(|tool| row(tool)).collect();
    render_columns(head, &rows, width, |at, cell| if at == 0 { paint(NAME, cell).to_string() } else { cell.to_owned() })
}

fn row(tool: &PastToolCalls) -> [String; 8] {
    let stats = &tool.stats;
    let server = UntrustedText::new(tool.server.as_deref().unwrap_or("-")).truncate(64).to_string();
    let name = UntrustedText::new(stats.tool.as_str()).truncate(100).to_string();
    let [calls, errors, half, most, nearly_all] = stats_cells(stats);
    [format!("  {server}"), name, calls, errors, half, most, nearly_all, AgeText(tool.last).to_string()]
}
