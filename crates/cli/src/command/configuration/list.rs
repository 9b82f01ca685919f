//! `wharf list`.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;
use wharf_config::{Config, ConfiguredServer, ProblemSeverity};
use wharf_spec::UntrustedText;

use super::super::{import, status};
use super::item::{ConfiguredServerItem, ProblemItem};
use crate::masking::SecretDisplay;
use wharf_terminal::columns::left_aligned;
use wharf_terminal::config_context::{ADD, problem_line};
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::session::{CommandSession, CommonArgs, JsonArgs, parse_timeout};
use wharf_terminal::status::show::{ServerRow, server_table, state_label};
use wharf_terminal::style::{QUIET, paint};

/// List the configured servers
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "ls",
    after_help = "\
Lists the configured servers and starts none without --probe. A row marked · is overridden by another with the \
same id. States: enabled, disabled, unapproved (a project's server you have not approved), changed (since you \
approved it), broken (see wharf validate), replaced (by a higher layer).

Examples:
  wharf list
  wharf list --scope project
  wharf list --probe --scope project --timeout 5
  wharf list --json \\
      | jq -r '.items[] | select(.state == \"broken\") | .id'"
)]
pub struct ConfigListArgs {
    /// Layers to show
    #[arg(long, short, value_enum, default_value_t = ScopeFilter::Effective)]
    scope: ScopeFilter,
    /// Connect to each server and show its status, like `wharf status --connect`
    #[arg(long, conflicts_with = "reveal")]
    probe: bool,
    /// Timeout of --probe for startup and for each response, e.g. 30, 250ms
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, requires = "probe")]
    timeout: Option<Duration>,
    /// Show secrets in clear text
    #[arg(long)]
    reveal: bool,
    #[command(flatten)]
    pub output: JsonArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScopeFilter {
    /// All layers
    Effective,
    /// The project's configuration
    Project,
    /// Your own configuration
    #[value(alias = "user")]
    Global,
}

impl ScopeFilter {
    /// Reports whether a server is defined in this scope.
    fn holds(self, server: &ConfiguredServer) -> bool {
        match self {
            Self::Effective => true,
            Self::Project => server.layer.source() == "project",
            Self::Global => server.layer.source() == "global",
        }
    }
}

#[derive(Serialize)]
struct ListDocument {
    items: Vec<ConfiguredServerItem>,
    /// Problems of files rather than of single servers.
    problems: Vec<ProblemItem>,
}

impl ConfigListArgs {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { timeout: self.timeout, ..self.output.common() }
    }
}

pub async fn run(args: &ConfigListArgs, session: &CommandSession) -> CommandResult {
    if args.probe {
        let servers = &session.configuration.config()?.servers;
        let in_scope = servers.iter().filter(|server| args.scope.holds(server));
        let ids: Vec<String> = in_scope.map(|server| server.name.to_string()).collect();
        return status::connect_and_list(session, &ids).await;
    }
    let config = session.configuration.config()?;
    let secrets = SecretDisplay::from_flag(args.reveal);
    let item = |server: &&ConfiguredServer| ConfiguredServerItem::new(server, config, &session.environment, secrets);
    let items: Vec<ConfiguredServerItem> = in_scope(config, args.scope).iter().map(item).collect();
    warn_of_errors(session, config, &items);
    if session.console.mode.json {
        let of_files = config.problems.iter().filter(|problem| problem.server.is_none());
        let problems = of_files.map(ProblemItem::new).collect();
        session.console.print_document(true, &ListDocument { items, problems })?;
    } else {
        print_table(session, config, &items)?;
    }
    Ok(CommandEnding::Fine)
}

/// Returns the servers of a scope sorted by id, each effective entry before those it replaces.
fn in_scope(config: &Config, scope: ScopeFilter) -> Vec<&ConfiguredServer> {
    let all = config.servers.iter().chain(&config.beside);
    let mut servers: Vec<&ConfiguredServer> = all.filter(|server| scope.holds(server)).collect();
    // The sort is stable, so that effective entries stay first.
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    servers
}

/// Warns about errors that disable a server. Other problems were reported when the configuration was loaded.
fn warn_of_errors(session: &CommandSession, config: &Config, items: &[ConfiguredServerItem]) {
    let is_shown = |id: &str| items.iter().any(|item| item.id == id);
    let costs = config.problems.iter().filter(|problem| problem.severity == ProblemSeverity::Error);
    for problem in costs.filter(|problem| problem.server.as_deref().is_some_and(is_shown)) {
        session.console.warn(problem_line(problem));
    }
}

fn print_table(session: &CommandSession, config: &Config, items: &[ConfiguredServerItem]) -> Result<(), Failure> {
    if items.is_empty() && !config.servers.is_empty() {
        session.console.say(status::NONE_IN_SCOPE);
        return Ok(());
    }
    if items.is_empty() {
        session.console.say(format_args!("No MCP servers configured; {ADD}"));
        say_importable(session)?;
        return Ok(());
    }
    let rows: Vec<ServerRow<6>> = items.iter().map(|item| row(session, item)).collect();
    let headings = left_aligned(["  ID", "TRANSPORT", "SOURCE", "STATE", "COMMAND OR URL", "FILE"]);
    session.console.print(server_table(headings, &rows, session.console.stdout_width()))?;
    let waiting: Vec<&str> =
        items.iter().filter(|item| !item.approved && item.state != "broken").map(|item| item.id.as_str()).collect();
    if !waiting.is_empty() {
        session.console.say(format_args!("Awaiting approval: wharf approve {}", waiting.join(" ")));
    }
    Ok(())
}

/// Says which other programs have servers, if nothing is configured here.
fn say_importable(session: &CommandSession) -> Result<(), Failure> {
    let config = session.configuration.config()?;
    let found = if config.servers.is_empty() { import::count_importable(session) } else { Vec::new() };
    if !found.is_empty() {
        let programs: Vec<String> =
            found.iter().map(|(client, count)| format!("{} ({count})", client.name())).collect();
        session.console.say(format_args!("Found servers of other programs: {}", programs.join(", ")));
        session.console.say(format_args!("  {} wharf import", paint(QUIET, "next:")));
    }
    Ok(())
}

fn row(session: &CommandSession, item: &ConfiguredServerItem) -> ServerRow<6> {
    let mark = if item.shadowed { "·" } else { " " };
    let file = display_path(item.file.as_ref(), &session.environment);
    let cells = [
        format!("{mark} {}", item.id),
        item.transport.unwrap_or("?").to_owned(),
        item.source.to_owned(),
        state_label(item.state),
        UntrustedText::new(item.target()).to_string(),
        format!("{file}:{}", item.line),
    ];
    ServerRow { cells, below: Vec::new() }
}
