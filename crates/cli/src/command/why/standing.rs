//! Checks that need no connection: location, approval and references of a server.

use std::time::Duration;

use wharf_config::{Approval, Config, Configured, ProblemSeverity, Reference, ReferenceTarget};
use wharf_spec::{Surroundings, Untrusted};

use super::{Report, barred};
use wharf_terminal::configured::{ADD, told, unapproved};
use wharf_terminal::failure::Failure;
use wharf_terminal::nearest::suggestion;
use wharf_terminal::probe::{Broken, Code, STDIO, Step, StepState};
use wharf_terminal::session::Session;

/// A step, and the failure if there is one.
pub type Checked = (Step, Option<Broken>);

/// Checks the location and the validity of the entry.
pub fn placed(server: &Configured, config: &Config, _: &Session) -> Checked {
    let detail = format!("{} ({})", server.place, server.layer.source());
    let evidence = beside(server, config).chain(warnings(server, config));
    let step = Step::new("config", StepState::Ok, Untrusted::new(detail)).evidence(evidence);
    let failed = |step: Step| Step { state: StepState::Failed, ..step };
    match &server.described {
        Err(problems) => {
            let step = failed(step).evidence(problems.iter().map(|problem| escaped(&told(problem))));
            let text = problems.first().map_or("it cannot be read".to_owned(), ToString::to_string);
            let fix = problems.iter().find_map(|problem| problem.fix.clone());
            let fix = fix.unwrap_or_else(|| "`wharf validate` shows everything that is wrong".to_owned());
            let failure = Failure::usage(text).about(server.name.as_str()).hint(fix);
            (step, Some(Broken { code: Code::ConfigBroken, failure }))
        }
        // Approval comes first: enabling an unapproved server does not make it usable.
        Ok(_) if !server.enabled && matches!(server.approval, Approval::NotNeeded | Approval::Approved(_)) => {
            (failed(step).evidence(["it is switched off".to_owned()]), barred(server, Code::ConfigDisabled))
        }
        Ok(_) => (step, None),
    }
}

/// Lists other entries of that name, which are not in effect.
fn beside<'a>(server: &'a Configured, config: &'a Config) -> impl Iterator<Item = String> + 'a {
    config.beside.iter().filter(|other| other.name == server.name).map(|other| {
        let place = escaped(&other.place.to_string());
        match other.approval {
            Approval::Needed => format!("{place} would replace it once it is approved"),
            Approval::Changed => format!("{place} would replace it, but has changed since it was approved"),
            Approval::NotNeeded | Approval::Approved(_) => format!("replaces {place}"),
        }
    })
}

fn warnings<'a>(server: &'a Configured, config: &'a Config) -> impl Iterator<Item = String> + 'a {
    let of_this = |problem: &&wharf_config::Problem| {
        problem.severity == ProblemSeverity::Warning && problem.server.as_deref() == Some(server.name.as_str())
    };
    config.problems.iter().filter(of_this).map(|problem| escaped(&told(problem)))
}

/// Checks the approval. References are not expanded before it, because reading a secret may run a program.
pub fn approval(server: &Configured, _: &Config, _: &Session) -> Checked {
    let (state, detail, code) = match server.approval {
        Approval::NotNeeded => (StepState::Ok, "not needed: it is your own", None),
        Approval::Approved(_) => (StepState::Ok, "you have approved it", None),
        Approval::Needed => (StepState::Failed, unapproved(server), Some(Code::ApprovalNeeded)),
        Approval::Changed => (StepState::Failed, "it has changed since you approved it", Some(Code::ApprovalChanged)),
    };
    (Step::new("approval", state, detail), code.and_then(|code| barred(server, code)))
}

/// Checks that the referenced variables are set. Never shows values.
pub fn references(server: &Configured, _: &Config, session: &Session) -> Checked {
    let references = server.described.as_ref().map(|described| described.references()).unwrap_or_default();
    let unset = references.iter().find_map(|reference| match &reference.to {
        ReferenceTarget::Variable { name, has_default: false } if session.surroundings.var(name).is_none() => {
            Some((name, reference))
        }
        _ => None,
    });
    let evidence = references.iter().map(|reference| shown(reference, &session.surroundings));
    let detail = match references.len() {
        0 => "it refers to nothing".to_owned(),
        1 => "1 reference".to_owned(),
        count => format!("{count} references"),
    };
    let step = Step::new("expand", StepState::Ok, detail).evidence(evidence);
    let Some((name, reference)) = unset else { return (step, None) };
    let text = format!("the variable `{name}` is not set");
    let step = Step {
        state: StepState::Failed,
        detail: format!("{text}, in {}", escaped(&reference.place.to_string())),
        ..step
    };
    let hint = format!("set {name}, or give a default: ${{{name}:-…}}");
    let failure = Failure::usage(text).about(server.name.as_str()).hint(hint);
    (step, Some(Broken { code: Code::ExpandUnset, failure }))
}

fn shown(reference: &Reference, around: &Surroundings) -> String {
    let is_set = |name: &str| around.var(name).is_some();
    match &reference.to {
        ReferenceTarget::Variable { name, .. } if is_set(name) => format!("{name}: set"),
        ReferenceTarget::Variable { name, has_default: true } => format!("{name}: not set, so its default is taken"),
        ReferenceTarget::Variable { name, .. } => format!("{name}: not set"),
        ReferenceTarget::HandedDown(name) if is_set(name) => format!("{}: handed down", escaped(name)),
        ReferenceTarget::HandedDown(name) => format!("{}: to be handed down, but not set", escaped(name)),
        ReferenceTarget::Secret(name) => format!("secret {}: looked up", escaped(name)),
        ReferenceTarget::File(file) => format!("variables of the file {}", escaped(file)),
    }
}

/// Returns the report for an unknown server. A file that cannot be read may define it.
pub fn missing(id: &str, config: &Config) -> Report {
    let unreadable =
        config.problems.iter().find(|problem| problem.severity == ProblemSeverity::Error && problem.server.is_none());
    let looked = config.layers.iter().map(|layer| {
        let found = if layer.found { "" } else { ", which is not there" };
        format!("looked in {}{found}", escaped(&layer.file.display().to_string()))
    });
    let broken = config.problems.iter().filter(|problem| problem.severity == ProblemSeverity::Error);
    let evidence: Vec<String> = looked.chain(broken.map(|problem| escaped(&told(problem)))).collect();
    let (code, detail, next) = match unreadable {
        Some(problem) => {
            let place = problem.place.as_ref().map(|place| place.file.display().to_string()).unwrap_or_default();
            let detail = format!("there is no server `{id}`, but {} cannot be read", escaped(&place));
            let next = problem.fix.clone().unwrap_or_else(|| format!("mend it: {problem}"));
            (Code::ConfigBroken, detail, next)
        }
        None if config.servers.is_empty() => {
            (Code::ConfigMissing, "no server is configured".to_owned(), ADD.to_owned())
        }
        None => {
            let names = config.servers.iter().map(|server| server.name.as_str());
            (Code::ConfigMissing, format!("there is no server `{id}`"), suggestion(id, names))
        }
    };
    let mut steps = vec![Step::new("config", StepState::Failed, Untrusted::new(detail.as_str())).evidence(evidence)];
    steps.extend(STDIO[1..].iter().map(|name| Step::new(name, StepState::NotReached, "")));
    let failure = Failure::usage(detail).hint(&next);
    Report {
        id: id.to_owned(),
        steps,
        outcome: Err(Box::new(Broken { code, failure })),
        next: Some(next),
        took: Duration::ZERO,
    }
}

fn escaped(text: &str) -> String {
    Untrusted::new(text).shortened(500).to_string()
}
