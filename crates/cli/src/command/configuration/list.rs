//! `wharf list`.

use clap::ValueEnum;
use serde::Serialize;
use wharf_config::{Config, ConfiguredServer, ProblemSeverity};
use wharf_spec::UntrustedText;

use super::super::status;
use super::item::{ConfiguredServerItem, ProblemItem};
use crate::masking::SecretDisplay;
use wharf_terminal::columns::{left_aligned, render_columns};
use wharf_terminal::config_context::{ADD, problem_line};
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{BAD, GOOD, NAME, QUIET, WARNING, paint};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Lists the configured servers and starts none without --probe. A row marked · is overridden by another with the \
same id. States: enabled, disabled, unapproved (a project's server you have not approved), changed (since you \
approved it), broken (see wharf validate), replaced (by a higher layer).

Examples:
  wharf list
  wharf list --scope project
  wharf list --probe
  wharf list --json \\
      | jq -r '.items[] | select(.state == \"broken\") | .id'")]
pub struct ConfigListArgs {
    /// Layers to show
    #[arg(long, short, value_enum, default_value_t = ScopeFilter::Effective)]
    scope: ScopeFilter,
    /// Connect to each server and show its status in one line
    #[arg(long, conflicts_with_all = ["json", "reveal", "scope"])]
    probe: bool,
    /// Show secrets in clear text
    #[arg(long)]
    reveal: bool,
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,
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

#[derive(Serialize)]
struct ListDocument {
    schema: u32,
    items: Vec<ConfiguredServerItem>,
    /// Problems of files rather than of single servers.
    problems: Vec<ProblemItem>,
}

impl ConfigListArgs {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { json: self.json, ..CommonArgs::default() }
    }
}

pub async fn run(args: &ConfigListArgs, session: &CommandSession) -> CommandResult {
    if args.probe {
        return status::print_brief(session, &[]).await;
    }
    let config = session.configuration.config()?;
    let secrets = SecretDisplay::from_flag(args.reveal);
    let item = |server: &&ConfiguredServer| ConfiguredServerItem::new(server, config, &session.surroundings, secrets);
    let items: Vec<ConfiguredServerItem> = in_scope(config, args.scope).iter().map(item).collect();
    warn_of_errors(session, config, &items);
    if session.console.manner.json {
        let of_files = config.problems.iter().filter(|problem| problem.server.is_none());
        let problems = of_files.map(ProblemItem::new).collect();
        session.console.print_json(&ListDocument { schema: 1, items, problems })?;
    } else {
        print_table(session, &items)?;
    }
    Ok(CommandEnding::Fine)
}

/// Returns the servers of a scope sorted by id, each effective entry before those it replaces.
fn in_scope(config: &Config, scope: ScopeFilter) -> Vec<&ConfiguredServer> {
    let is_in = |server: &&ConfiguredServer| match scope {
        ScopeFilter::Effective => true,
        ScopeFilter::Project => server.layer.source() == "project",
        ScopeFilter::Global => server.layer.source() == "global",
    };
    let mut servers: Vec<&ConfiguredServer> = config.servers.iter().chain(&config.beside).filter(is_in).collect();
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

fn print_table(session: &CommandSession, items: &[ConfiguredServerItem]) -> Result<(), Failure> {
    if items.is_empty() {
        session.console.say(format_args!("No MCP servers configured; {ADD}"));
        return Ok(());
    }
    let rows: Vec<[String; 6]> = items.iter().map(|item| row(session, item)).collect();
    let headings = left_aligned(["  ID", "TRANSPORT", "SOURCE", "STATE", "COMMAND OR URL", "FILE"]);
    session.console.print(render_columns(headings, &rows, session.console.stdout_width(), style_cell))?;
    let waiting: Vec<&str> =
        items.iter().filter(|item| !item.approved && item.state != "broken").map(|item| item.id.as_str()).collect();
    if !waiting.is_empty() {
        session.console.say(format_args!("Awaiting approval: wharf approve {}", waiting.join(" ")));
    }
    Ok(())
}

fn row(session: &CommandSession, item: &ConfiguredServerItem) -> [String; 6] {
    let mark = if item.shadowed { "·" } else { " " };
    let file = display_path(item.file.as_ref(), &session.surroundings);
    [
        format!("{mark} {}", item.id),
        item.transport.unwrap_or("?").to_owned(),
        item.source.to_owned(),
        item.state.to_owned(),
        UntrustedText::new(item.target()).to_string(),
        format!("{file}:{}", item.line),
    ]
}

fn style_cell(column: usize, cell: &str) -> String {
    let style = match (column, cell) {
        (0, _) => NAME,
        (3, "enabled") => GOOD,
        (3, "broken") => BAD,
        (3, "unapproved" | "changed") => WARNING,
        (3 | 5, _) => QUIET,
        _ => return cell.to_owned(),
    };
    paint(style, cell).to_string()
}
