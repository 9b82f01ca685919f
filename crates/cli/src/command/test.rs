//! `wharf test`: connects to a server, pings it, and lists its tools.

use clap::ValueEnum;
use wharf_config::{Config, ConfiguredServer};

use super::why::{DiagnosisReport, diagnose};
use wharf_terminal::clock::DurationText;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::probe::{ProbeFailure, StepState};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{GOOD, paint};

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
    show(session, &report)
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

fn show(session: &CommandSession, report: &DiagnosisReport) -> Result<CommandEnding, Failure> {
    if session.console.manner.json {
        session.console.print_json(&report.document())?;
        return Ok(report.ending());
    }
    let ending = match &report.outcome {
        Ok(ready) => {
            let tools = ready.section.tools.len();
            let noun = if tools == 1 { "tool" } else { "tools" };
            format!("{} {tools} {noun}, {}, {}\n", paint(GOOD, "ok:"), ready.revision, DurationText(report.took))
        }
        Err(broken) => verdict_with_hint(report, broken),
    };
    session.console.print(report.text(&ending, session.console.stdout_width()))?;
    Ok(report.ending())
}

fn verdict_with_hint(report: &DiagnosisReport, broken: &ProbeFailure) -> String {
    format!("{}more: wharf why {}\n", report.verdict(broken), report.id)
}
