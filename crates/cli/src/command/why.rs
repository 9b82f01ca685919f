//! `wharf why`: checks every step of reaching a server and shows the one that fails.

mod config_checks;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use wharf_config::{Config, ConfiguredServer, TransportDefinition};
use wharf_spec::UntrustedText;

use self::config_checks::{StepCheck, check_approval, check_entry, check_references, unknown_server_report};
use wharf_terminal::config_context::usage_refusal;
use wharf_terminal::failure::{CommandEnding, CommandResult, ErrorDocument, Failure};
use wharf_terminal::probe::{
    self, ProbeCode, ProbeFailure, ProbeStep, ReadyServer, StepState, next_step, render_steps, step_document,
};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{BAD, GOOD, HEADING, QUIET, WARNING, paint};
use wharf_terminal::table::wrap;

/// Diagnose a configured server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Steps: config, approval, expand; then path and spawn, or dial, tls and login; then handshake, ping, list, \
schema; stdout if the server writes lines that are not messages. Failure codes are stable, for scripts. Values of \
variables and secrets are never shown.

Examples:
  wharf why git
  wharf why git --json | jq -r .code")]
pub struct WhyArgs {
    /// Name of the server
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Diagnosis of a server.
pub struct DiagnosisReport {
    pub id: String,
    pub steps: Vec<ProbeStep>,
    pub outcome: Result<ReadyServer, Box<ProbeFailure>>,
    /// Next step for the user, if there is a problem.
    pub next: Option<String>,
    /// Time for connecting and listing.
    pub duration: Duration,
}

/// JSON document of `test` and `why`.
#[derive(Serialize)]
struct ReportDocument<'a, S> {
    id: &'a str,
    /// Code of the failure.
    code: Option<ProbeCode>,
    revision: Option<&'a str>,
    tools: Option<usize>,
    steps: Vec<S>,
    error: Option<ErrorDocument<'a>>,
    hint: Option<&'a str>,
}

pub async fn run(args: &WhyArgs, session: &CommandSession) -> CommandResult {
    let config = session.configuration.config()?;
    let report = match config.server(&args.id) {
        Some(server) => diagnose(session, config, server).await,
        None => unknown_server_report(&args.id, config),
    };
    if session.console.mode.json {
        session.console.print_document(report.outcome.is_ok(), &report.document())?;
    } else {
        let ending = match &report.outcome {
            Ok(_) => report.success_text(),
            Err(broken) => report.verdict(broken),
        };
        session.console.print(report.text(&ending, session.console.stdout_width()))?;
    }
    Ok(report.ending())
}

/// Checks every step of reaching a server.
pub async fn diagnose(session: &CommandSession, config: &Arc<Config>, server: &ConfiguredServer) -> DiagnosisReport {
    let mut steps = Vec::new();
    let checks: [fn(&ConfiguredServer, &Config, &CommandSession) -> StepCheck; 3] =
        [check_entry, check_approval, check_references];
    for check in checks {
        let (step, broken) = check(server, config, session);
        steps.push(step);
        if let Some(broken) = broken {
            return DiagnosisReport::from_failure(server, steps, broken);
        }
    }
    let resolved = session.configuration.resolve(vec![server.clone()], Arc::clone(config)).await.pop();
    let entry = match resolved.unwrap_or_else(|| Err(Failure::other("internal error: the resolver task was cancelled")))
    {
        Ok(entry) => entry,
        Err(failure) => {
            let broken = ProbeFailure { code: ProbeCode::ExpandFailed, failure };
            return DiagnosisReport::from_failed_check(server, steps, broken);
        }
    };
    let probed = match probe::probe_one(session, &entry).await {
        Ok(probed) => probed,
        Err(failure) => {
            let broken = ProbeFailure { code: ProbeCode::ConfigBroken, failure };
            return DiagnosisReport::from_failed_check(server, steps, broken);
        }
    };
    steps.extend(probed.steps);
    match probed.outcome {
        Ok(ready) => DiagnosisReport {
            id: server.name.to_string(),
            steps,
            outcome: Ok(ready),
            next: None,
            duration: probed.duration,
        },
        Err(broken) => {
            DiagnosisReport { duration: probed.duration, ..DiagnosisReport::from_failure(server, steps, *broken) }
        }
    }
}

impl DiagnosisReport {
    /// Creates the report of a failed server. Later steps are marked as not reached.
    pub fn from_failure(server: &ConfiguredServer, mut steps: Vec<ProbeStep>, broken: ProbeFailure) -> Self {
        let next = next_step(broken.code, server, &broken.failure);
        let chain: &[&'static str] = match &server.described {
            Ok(described) if matches!(described.reach, TransportDefinition::Http(_)) => &probe::HTTP,
            _ => &probe::STDIO,
        };
        let after = chain.iter().skip_while(|name| **name != broken.code.stage()).skip(1);
        let unreached: Vec<&'static str> =
            after.copied().filter(|name| steps.iter().all(|step| step.name != *name)).collect();
        steps.extend(unreached.into_iter().map(|name| ProbeStep::new(name, StepState::NotReached, "")));
        Self {
            id: server.name.to_string(),
            steps,
            outcome: Err(Box::new(broken)),
            next: Some(next),
            duration: Duration::ZERO,
        }
    }

    /// Creates the report of a server whose check passed at first and fails later: its step is marked as failed, and the
    /// steps after it are dropped.
    fn from_failed_check(server: &ConfiguredServer, mut steps: Vec<ProbeStep>, broken: ProbeFailure) -> Self {
        let stage = broken.code.stage();
        steps.truncate(steps.iter().position(|step| step.name == stage).unwrap_or(steps.len()));
        let message = UntrustedText::new(broken.failure.error.message.as_str());
        steps.push(ProbeStep::new(stage, StepState::Failed, message));
        Self::from_failure(server, steps, broken)
    }

    /// Returns the JSON document.
    pub fn document(&self) -> impl Serialize + '_ {
        let (ready, broken) = (self.outcome.as_ref().ok(), self.outcome.as_ref().err());
        ReportDocument {
            id: &self.id,
            code: broken.map(|broken| broken.code),
            revision: ready.map(|ready| ready.revision.as_str()),
            tools: ready.map(|ready| ready.section.tools.len()),
            steps: self.steps.iter().map(step_document).collect(),
            error: broken.map(|broken| broken.failure.error_document()),
            hint: self.next.as_deref(),
        }
    }

    /// Returns the name and version that the server reports. Escaped.
    pub fn server_info(&self) -> Option<String> {
        let info = self.outcome.as_ref().ok()?.server_info.as_ref()?;
        let text = format!("{} {}", info.name, info.version);
        Some(UntrustedText::new(text.trim()).truncate(80).to_string()).filter(|text| !text.is_empty())
    }

    /// Returns the text: the steps, then the ending.
    pub fn text(&self, ending: &str, width: Option<usize>) -> String {
        let id = UntrustedText::new(self.id.as_str()).to_string();
        let info = self.server_info().map(|info| format!("  {}", paint(QUIET, info))).unwrap_or_default();
        let heading = format!("{}{info}", paint(HEADING, id));
        format!("{heading}\n{}\n\n{ending}", wrap(render_steps(&self.steps, width).trim_end(), width))
    }

    /// Returns the ending of a usable server.
    fn success_text(&self) -> String {
        // Schemas that were adapted for models are not a problem of the connection.
        let is_odd = |step: &&ProbeStep| step.state == StepState::Detour && step.name != "schema";
        let odd: Vec<&str> = self.steps.iter().filter(is_odd).map(|step| step.name).collect();
        match odd.is_empty() {
            true => format!("{}\n", paint(GOOD, "no problems found")),
            false => format!("{} see {} above\n", paint(WARNING, "usable, with problems:"), odd.join(", ")),
        }
    }

    /// Returns the failure and the next step.
    pub fn verdict(&self, broken: &ProbeFailure) -> String {
        let message = UntrustedText::new(broken.failure.error.message.as_str());
        let next = UntrustedText::new(self.next.as_deref().unwrap_or_default()).to_string();
        format!(
            "{} {message}.\n{} {next}\n",
            paint(BAD, format_args!("{}:", broken.code.as_str())),
            paint(QUIET, "next:")
        )
    }

    /// Returns the command's ending, which determines the exit code.
    pub fn ending(&self) -> CommandEnding {
        self.outcome.as_ref().err().map_or(CommandEnding::Fine, |broken| CommandEnding::Reported(broken.failure.kind))
    }
}

/// Returns the reason that a server may not be used.
fn refused_step(server: &ConfiguredServer, code: ProbeCode) -> Option<ProbeFailure> {
    usage_refusal(server).map(|failure| ProbeFailure { code, failure })
}
