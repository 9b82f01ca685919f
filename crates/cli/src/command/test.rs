//! `wharf test`: connects to a server, pings it, and lists its tools.

use clap::ValueEnum;
use wharf_config::{Config, ConfiguredServer};

use super::why::{DiagnosisReport, diagnose};
use wharf_terminal::clock::DurationText;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::probe::{ProbeCode, StepState, render_steps};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::status::show::{ServerRow, server_table, state_label, status_headings};
use wharf_terminal::status::status_rows::transport_word;
use wharf_terminal::style::{QUIET, paint};

/// Test whether a configured server works
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 2 configuration error, 3 the server is unreachable or does not speak MCP, 4 login needed, 5 not \
approved, 7 timed out.

Examples:
  wharf test git
  wharf test git --scope project --timeout 60
  wharf test git --json | jq .steps")]
pub struct TestArgs {
    /// Name of the server
    #[arg(value_name = "ID")]
    id: String,
    /// Entry to test: the one in effect, the project's or your own
    #[arg(long, short, value_enum, default_value_t = TestScope::Effective, value_name = "SCOPE")]
    scope: TestScope,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TestScope {
    Effective,
    Project,
    #[value(alias = "user")]
    Global,
}

/// Steps before the connection. Shown only if they fail.
const CONFIG_STEPS: [&str; 3] = ["config", "approval", "expand"];

pub async fn run(args: &TestArgs, session: &CommandSession) -> CommandResult {
    let config = session.configuration.config()?;
    let server = find_in_scope(session, config, &args.id, args.scope)?;
    let mut report = diagnose(session, config, server).await;
    // Only `why` shows the other steps.
    report.steps.retain(|step| {
        step.name != "schema" && (step.state == StepState::Failed || !CONFIG_STEPS.contains(&step.name))
    });
    show(session, &report, server)
}

/// Returns the server's entry in a scope, from the highest layer.
fn find_in_scope<'a>(
    session: &'a CommandSession,
    config: &'a Config,
    id: &str,
    scope: TestScope,
) -> Result<&'a ConfiguredServer, Failure> {
    let effective = session.configuration.find(id)?;
    let source = match scope {
        TestScope::Effective => return Ok(effective),
        TestScope::Project => "project",
        TestScope::Global => "global",
    };
    let all = config.beside.iter().filter(|other| other.name == effective.name).chain([effective]);
    let of_scope = all.filter(|server| server.layer.source() == source).max_by_key(|server| server.layer);
    of_scope.ok_or_else(|| {
        let failure = Failure::usage(format_args!("no {source} server named `{id}`")).about_server(id);
        failure.with_hint(format_args!("it is defined in {}", effective.place))
    })
}

fn show(
    session: &CommandSession,
    report: &DiagnosisReport,
    server: &ConfiguredServer,
) -> Result<CommandEnding, Failure> {
    if session.console.mode.json {
        session.console.print_document(report.outcome.is_ok(), &report.document())?;
        return Ok(report.ending());
    }
    let width = session.console.stdout_width();
    session.console.print(server_table(status_headings("TIME"), &[row(report, server, width)], width))?;
    Ok(report.ending())
}

/// Returns the server's row, with its steps and the verdict below it.
fn row(report: &DiagnosisReport, server: &ConfiguredServer, width: Option<usize>) -> ServerRow<7> {
    let ready = report.outcome.as_ref().ok();
    let cell = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let cells = [
        format!("  {}", server.name),
        transport_word(server).unwrap_or("?").to_owned(),
        server.layer.source().to_owned(),
        state_label(report.outcome.as_ref().map_or_else(|broken| failed_state(broken.code), |_| "ready")),
        cell(ready.map(|ready| ready.section.tools.len().to_string())),
        cell(ready.map(|ready| ready.revision.clone())),
        cell(ready.map(|_| DurationText(report.duration).to_string())),
    ];
    let mut below = report.server_info().map(|info| format!("      {}\n", paint(QUIET, info))).unwrap_or_default();
    below.push_str(&render_steps(&report.steps, width));
    if let Err(broken) = &report.outcome {
        below.push_str(&format!("{}more: wharf why {}\n", report.verdict(broken), report.id));
    }
    ServerRow { cells, below: below.lines().map(str::to_owned).collect() }
}

/// Returns the state of a server that does not work, as `wharf status` shows it.
fn failed_state(code: ProbeCode) -> &'static str {
    match code {
        ProbeCode::ConfigDisabled => "disabled",
        ProbeCode::ApprovalNeeded | ProbeCode::ApprovalChanged => "unapproved",
        ProbeCode::LoginNeeded => "auth_required",
        _ => "failed",
    }
}
