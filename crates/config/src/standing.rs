//! Approval status of a project's servers: approved, changed or new.

use std::path::Path;
use std::sync::Arc;

use wharf_spec::{ServerName, Surroundings};

use crate::approvals::look::Contents;
use crate::tree::TextPosition;
use crate::{
    Approval, ApprovalKey, ApprovalState, ApprovalStore, ApprovalSubject, ApprovalsError, Approved, Described, Place,
    Places, Problem, ProblemSeverity,
};

/// Looks up approvals. The approvals file is read once, and only if there is a server that needs approval.
pub(crate) struct ApprovalLookup<'a> {
    places: &'a Places,
    around: &'a Surroundings,
    approved: Option<Approved>,
    problem: Option<Problem>,
    contents: Contents,
}

impl<'a> ApprovalLookup<'a> {
    pub fn new(places: &'a Places, around: &'a Surroundings) -> Self {
        Self { places, around, approved: None, problem: None, contents: Contents::default() }
    }

    pub fn of(&mut self, file: &Path, name: &ServerName, described: &Described) -> Approval {
        let key = ApprovalKey::of(&self.places.project, file, name.as_str());
        // Skip hashing the files of a server that was never approved.
        if !self.approved().knows(&key) {
            return Approval::Needed;
        }
        let digest = ApprovalSubject::among(described, self.around, &mut self.contents).digest();
        match self.approved().state(&key, digest) {
            ApprovalState::Approved => Approval::Approved(digest),
            ApprovalState::Needed => Approval::Needed,
            ApprovalState::Changed { .. } => Approval::Changed,
        }
    }

    /// Loads the approvals on first use. Unreadable approvals are treated as empty.
    fn approved(&mut self) -> &Approved {
        let path = &self.places.approvals;
        if self.approved.is_none() && !path.as_os_str().is_empty() {
            match ApprovalStore::at(path).load() {
                Ok(approved) => self.approved = Some(approved),
                Err(error) => self.problem = Some(told(path, &error)),
            }
        }
        self.approved.get_or_insert_default()
    }

    /// Takes the problem of unreadable approvals, if any.
    pub fn problem(&mut self) -> Option<Problem> {
        self.problem.take()
    }
}

fn told(path: &Path, error: &ApprovalsError) -> Problem {
    Problem {
        code: "approvals",
        severity: ProblemSeverity::Error,
        place: Some(Place { file: Arc::from(path), at: TextPosition::START }),
        server: None,
        text: error.to_string(),
        fix: Some(error.fix()),
    }
}
