//! Checks that need no connection: location, approval and references of a server.

use std::time::Duration;

use wharf_config::{Config, ConfigReference, ConfiguredServer, ProblemSeverity, ReferenceTarget, ServerApproval};
use wharf_spec::{Environment, UntrustedText};

use super::{DiagnosisReport, refused_step};
use wharf_terminal::config_context::{ADD, approval_reason, problem_line};
use wharf_terminal::failure::Failure;
use wharf_terminal::probe::{ProbeCode, ProbeFailure, ProbeStep, STDIO, StepState};
use wharf_terminal::session::CommandSession;
use wharf_terminal::suggestions::suggestion;

/// A step, and the failure if there is one.
pub type StepCheck = (ProbeStep, Option<ProbeFailure>);

/// Checks the location and the validity of the entry.
pub fn check_entry(server: &ConfiguredServer, config: &Config, _: &CommandSession) -> StepCheck {
    let detail = format!("{} ({})", server.place, server.layer.source());
    let evidence = other_entries(server, config).chain(warnings(server, config));
    let step = ProbeStep::new("config", StepState::Ok, UntrustedText::new(detail)).with_evidence(evidence);
    let failed = |step: ProbeStep| ProbeStep { state: StepState::Failed, ..step };
    match &server.described {
        Err(problems) => {
            let step =
                failed(step).with_evidence(problems.iter().map(|problem| escape_shortened(&problem_line(problem))));
            let text = problems.first().map_or("the entry is invalid".to_owned(), ToString::to_string);
            let fix = problems.iter().find_map(|problem| problem.fix.clone());
            let fix = fix.unwrap_or_else(|| "`wharf validate` lists all problems".to_owned());
            let failure = Failure::usage(text).about_server(server.name.as_str()).with_hint(fix);
            (step, Some(ProbeFailure { code: ProbeCode::ConfigBroken, failure }))
        }
        // Approval comes first: enabling an unapproved server does not make it usable.
        Ok(_)
            if !server.enabled
                && matches!(server.approval, ServerApproval::NotNeeded | ServerApproval::Approved(_)) =>
        {
            (failed(step).with_evidence(["disabled".to_owned()]), refused_step(server, ProbeCode::ConfigDisabled))
        }
        Ok(_) => (step, None),
    }
}

/// Lists other entries of that name, which are not in effect.
fn other_entries<'a>(server: &'a ConfiguredServer, config: &'a Config) -> impl Iterator<Item = String> + 'a {
    config.beside.iter().filter(|other| other.name == server.name).map(|other| {
        let place = escape_shortened(&other.place.to_string());
        match other.approval {
            ServerApproval::Needed => format!("{place} would replace it once it is approved"),
            ServerApproval::Changed => format!("{place} would replace it, but has changed since it was approved"),
            ServerApproval::NotNeeded | ServerApproval::Approved(_) => format!("replaces {place}"),
        }
    })
}

fn warnings<'a>(server: &'a ConfiguredServer, config: &'a Config) -> impl Iterator<Item = String> + 'a {
    let of_this = |problem: &&wharf_config::ConfigProblem| {
        problem.severity == ProblemSeverity::Warning && problem.server.as_deref() == Some(server.name.as_str())
    };
    config.problems.iter().filter(of_this).map(|problem| escape_shortened(&problem_line(problem)))
}

/// Checks the approval. References are not expanded before it, because reading a secret may run a program.
pub fn check_approval(server: &ConfiguredServer, _: &Config, _: &CommandSession) -> StepCheck {
    let (state, detail, code) = match server.approval {
        ServerApproval::NotNeeded => (StepState::Ok, "not needed: your own server", None),
        ServerApproval::Approved(_) => (StepState::Ok, "approved", None),
        ServerApproval::Needed => (StepState::Failed, approval_reason(server), Some(ProbeCode::ApprovalNeeded)),
        ServerApproval::Changed => {
            (StepState::Failed, "changed since you approved it", Some(ProbeCode::ApprovalChanged))
        }
    };
    (ProbeStep::new("approval", state, detail), code.and_then(|code| refused_step(server, code)))
}

/// Checks that the referenced variables are set. Never shows values.
pub fn check_references(server: &ConfiguredServer, _: &Config, session: &CommandSession) -> StepCheck {
    let references = server.described.as_ref().map(|described| described.references()).unwrap_or_default();
    let unset = references.iter().find_map(|reference| match &reference.to {
        ReferenceTarget::Variable { name, has_default: false } if session.environment.var(name).is_none() => {
            Some((name, reference))
        }
        _ => None,
    });
    let evidence = references.iter().map(|reference| reference_line(reference, &session.environment));
    let detail = match references.len() {
        0 => "no references".to_owned(),
        1 => "1 reference".to_owned(),
        count => format!("{count} references"),
    };
    let step = ProbeStep::new("expand", StepState::Ok, detail).with_evidence(evidence);
    let Some((name, reference)) = unset else { return (step, None) };
    let text = format!("the variable `{name}` is not set");
    let step = ProbeStep {
        state: StepState::Failed,
        detail: format!("{text}, in {}", escape_shortened(&reference.place.to_string())),
        ..step
    };
    let hint = format!("set {name}, or give a default: ${{{name}:-…}}");
    let failure = Failure::usage(text).about_server(server.name.as_str()).with_hint(hint);
    (step, Some(ProbeFailure { code: ProbeCode::ExpandUnset, failure }))
}

fn reference_line(reference: &ConfigReference, environment: &Environment) -> String {
    let is_set = |name: &str| environment.var(name).is_some();
    match &reference.to {
        ReferenceTarget::Variable { name, .. } if is_set(name) => format!("{name}: set"),
        ReferenceTarget::Variable { name, has_default: true } => format!("{name}: not set, using its default"),
        ReferenceTarget::Variable { name, .. } => format!("{name}: not set"),
        ReferenceTarget::HandedDown(name) if is_set(name) => format!("{}: passed on", escape_shortened(name)),
        ReferenceTarget::HandedDown(name) => format!("{}: to be passed on, but not set", escape_shortened(name)),
        ReferenceTarget::Secret(name) => format!("secret {}: looked up", escape_shortened(name)),
        ReferenceTarget::File(file) => format!("variables of the file {}", escape_shortened(file)),
    }
}

/// Returns the report for an unknown server. A file that cannot be read may define it.
pub fn unknown_server_report(id: &str, config: &Config) -> DiagnosisReport {
    let unreadable =
        config.problems.iter().find(|problem| problem.severity == ProblemSeverity::Error && problem.server.is_none());
    let looked = config.layers.iter().map(|layer| {
        let found = if layer.found { "" } else { " (not found)" };
        format!("looked in {}{found}", escape_shortened(&layer.file.display().to_string()))
    });
    let broken = config.problems.iter().filter(|problem| problem.severity == ProblemSeverity::Error);
    let evidence: Vec<String> = looked.chain(broken.map(|problem| escape_shortened(&problem_line(problem)))).collect();
    let (code, detail, next) = match unreadable {
        Some(problem) => {
            let place = problem.place.as_ref().map(|place| place.file.display().to_string()).unwrap_or_default();
            let detail = format!("no server named `{id}`, and {} cannot be read", escape_shortened(&place));
            let next = problem.fix.clone().unwrap_or_else(|| format!("fix it: {problem}"));
            (ProbeCode::ConfigBroken, detail, next)
        }
        None if config.servers.is_empty() => {
            (ProbeCode::ConfigMissing, "no servers configured".to_owned(), ADD.to_owned())
        }
        None => {
            let names = config.servers.iter().map(|server| server.name.as_str());
            (ProbeCode::ConfigMissing, format!("no server named `{id}`"), suggestion(id, names))
        }
    };
    let mut steps =
        vec![ProbeStep::new("config", StepState::Failed, UntrustedText::new(detail.as_str())).with_evidence(evidence)];
    steps.extend(STDIO[1..].iter().map(|name| ProbeStep::new(name, StepState::NotReached, "")));
    let failure = Failure::usage(detail).with_hint(&next);
    DiagnosisReport {
        id: id.to_owned(),
        steps,
        outcome: Err(Box::new(ProbeFailure { code, failure })),
        next: Some(next),
        duration: Duration::ZERO,
    }
}

fn escape_shortened(text: &str) -> String {
    UntrustedText::new(text).truncate(500).to_string()
}
