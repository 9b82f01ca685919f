//! Approval status of a project's servers: approved, changed or new.

use std::path::Path;
use std::sync::Arc;

use wharf_spec::{Environment, ServerName};

use crate::approvals::file_digests::FileDigestCache;
use crate::tree::TextPosition;
use crate::{
    ApprovalKey, ApprovalSnapshot, ApprovalState, ApprovalStore, ApprovalSubject, ApprovalsError, ConfigPaths,
    ConfigProblem, ProblemSeverity, ServerApproval, ServerDefinition, SourceLocation,
};

/// Looks up approvals. The approvals file is read once, and only if there is a server that needs approval.
pub(crate) struct ApprovalLookup<'a> {
    places: &'a ConfigPaths,
    around: &'a Environment,
    approved: Option<ApprovalSnapshot>,
    problem: Option<ConfigProblem>,
    contents: FileDigestCache,
}

impl<'a> ApprovalLookup<'a> {
    pub fn new(places: &'a ConfigPaths, around: &'a Environment) -> Self {
        Self { places, around, approved: None, problem: None, contents: FileDigestCache::default() }
    }

    pub fn status_of(&mut self, file: &Path, name: &ServerName, described: &ServerDefinition) -> ServerApproval {
        let key = ApprovalKey::new(&self.places.project, file, name.as_str());
        // Skip hashing the files of a server that was never approved.
        if !self.load_snapshot().contains(&key) {
            return ServerApproval::Needed;
        }
        let digest = ApprovalSubject::inspect_with_cache(described, self.around, &mut self.contents).digest();
        match self.load_snapshot().state(&key, digest) {
            ApprovalState::Approved => ServerApproval::Approved(digest),
            ApprovalState::Needed => ServerApproval::Needed,
            ApprovalState::Changed { .. } => ServerApproval::Changed,
        }
    }

    /// Loads the approvals on first use. Unreadable approvals are treated as empty.
    fn load_snapshot(&mut self) -> &ApprovalSnapshot {
        let path = &self.places.approvals;
        if self.approved.is_none() && !path.as_os_str().is_empty() {
            match ApprovalStore::new(path).load() {
                Ok(approved) => self.approved = Some(approved),
                Err(error) => self.problem = Some(unreadable_approvals(path, &error)),
            }
        }
        self.approved.get_or_insert_default()
    }

    /// Takes the problem of unreadable approvals, if any.
    pub fn take_problem(&mut self) -> Option<ConfigProblem> {
        self.problem.take()
    }
}

fn unreadable_approvals(path: &Path, error: &ApprovalsError) -> ConfigProblem {
    ConfigProblem {
        code: "approvals",
        severity: ProblemSeverity::Error,
        place: Some(SourceLocation { file: Arc::from(path), at: TextPosition::START }),
        server: None,
        text: error.to_string(),
        fix: Some(error.fix()),
    }
}
