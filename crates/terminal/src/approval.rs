//! Servers of a project that wait for approval.

use std::fmt::Write as _;
use std::path::Path;
use std::time::SystemTime;

use wharf::ConsentAnswer;
use wharf_config::{
    ApprovalKey, ApprovalState, ApprovalStore, ApprovalSubject, ApprovalsError, Config, ConfiguredServer,
    ServerApproval, ServerDefinition,
};
use wharf_spec::{Environment, ServerName};

use crate::approval_effects::ApprovalEffects;
use crate::failure::{Failure, gutter};
use crate::session::CommandSession;
use crate::style::{GOOD, HEADING, QUIET, paint};

/// A server that awaits approval.
pub struct Waiting {
    pub server: ConfiguredServer,
    key: ApprovalKey,
    pub what: ApprovalSubject,
    /// Lines of the version approved before, if there is one.
    before: Option<Vec<String>>,
    pub effects: ApprovalEffects,
}

/// Returns the servers that await approval and have a valid entry. Blocks: reads the files that would run.
///
/// # Errors
///
/// Fails if the stored approvals cannot be read.
pub fn pending_approvals<'a>(
    servers: impl IntoIterator<Item = &'a ConfiguredServer>,
    approvals: &ApprovalStore,
    project: &Path,
    environment: &Environment,
) -> Result<Vec<Waiting>, Failure> {
    let known = approvals.load().map_err(approvals_failed)?;
    let servers = servers.into_iter().filter(|server| awaits_approval(server)).filter_map(|server| {
        let described: &ServerDefinition = server.described.as_ref().ok()?;
        let what = ApprovalSubject::inspect(described, environment);
        let key = ApprovalKey::new(project, &server.place.file, server.name.as_str());
        let before = match known.state(&key, what.digest()) {
            ApprovalState::Changed { before } => Some(before),
            _ => None,
        };
        Some(Waiting { server: server.clone(), key, what, before, effects: ApprovalEffects::default() })
    });
    Ok(servers.collect())
}

pub fn awaits_approval(server: &ConfiguredServer) -> bool {
    matches!(server.approval, ServerApproval::Needed | ServerApproval::Changed)
}

pub fn open_approvals(session: &CommandSession) -> Result<ApprovalStore, Failure> {
    let path = &session.configuration.places.approvals;
    if path.as_os_str().is_empty() {
        let failure = Failure::other("no directory to store approvals in");
        return Err(failure.with_hint("set HOME or XDG_STATE_HOME"));
    }
    Ok(ApprovalStore::new(path))
}

pub fn approvals_failed(error: ApprovalsError) -> Failure {
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Failure::other(format_args!("{error}{cause}")).with_hint(error.fix())
}

/// Returns the line that reports the user's decision.
pub fn decision_line(name: &ServerName, consent: ConsentAnswer) -> String {
    match consent {
        ConsentAnswer::Given => format!("{} {name}. Undo: wharf revoke {name}", paint(GOOD, "Approved")),
        ConsentAnswer::Refused => format!("{name} was not approved."),
    }
}

impl Waiting {
    /// Computes the effects of the approval within the configuration. Blocks.
    pub fn with_effects(self, config: &Config) -> Self {
        Self { effects: ApprovalEffects::new(&self.server, config), ..self }
    }

    /// Stores the approval of exactly this version. Blocks.
    ///
    /// # Errors
    ///
    /// Fails if the approval cannot be stored.
    pub fn approve(&self, approvals: &ApprovalStore) -> Result<(), Failure> {
        approvals.approve(&self.key, &self.what, SystemTime::now()).map_err(approvals_failed)
    }

    /// Returns the full text to review. Nothing is shortened; lines are escaped.
    pub fn review_text(&self) -> String {
        let Self { server, what, before, .. } = self;
        let mut text = format!("\n{}  {}", paint(HEADING, &server.name), paint(QUIET, &server.place));
        match before {
            None if server.layer.needs_approval() => {
                text.push_str("\nThe project wants to start or connect to this server:");
            }
            None => text.push_str("\nYour own server refers to this project's directory:"),
            Some(_) => text.push_str("\nThis server has changed since you approved it (- before, + now):"),
        }
        // Every line is in the gutter, and continuation lines are indented within it, so that no argument can imitate a
        // line of the question.
        let now = what.lines();
        for line in before.iter().flatten().filter(|line| !now.contains(line)) {
            let _ = write!(text, "\n{}", gutter(&format!("- {line}")));
        }
        let is_new = |line: &String| before.as_ref().is_some_and(|before| !before.contains(line));
        for line in &now {
            let mark = if is_new(line) { "+ " } else { "" };
            let _ = write!(text, "\n{}", gutter(&format!("{mark}{line}")));
        }
        text.push_str(&self.effects.to_lines(&server.name));
        text
    }
}
