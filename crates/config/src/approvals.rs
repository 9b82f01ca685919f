//! The user's approvals of project servers, stored on disk.
//!
//! An approval applies to one server of one file of one project, and to exactly the content described by
//! [`ApprovalSubject`]. The file is private and outside of every project, so that a project cannot approve itself.

mod approval_subject;
mod entry_points;
pub(crate) mod file_digests;
#[cfg(test)]
mod tests;
mod warnings;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use wharf_spec::{Environment, Fingerprint, LaunchRefusal};
use wharf_store::{Document, DocumentLoadError, DocumentPrivacy, DocumentSaveError, DocumentUpdateError};

pub use approval_subject::{ApprovalDigest, ApprovalSubject};

use crate::ServerDefinition;

/// Schema version of the file.
const SCHEMA: u64 = 1;

/// The approvals file. Operations block.
#[derive(Debug, Clone)]
pub struct ApprovalStore {
    document: Document,
}

/// Identifies the server that an approval applies to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalKey {
    project: String,
    file: String,
    server: String,
}

/// A snapshot of all approvals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalSnapshot(Vec<ApprovalRecord>);

/// Approval state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// The server is approved in its current form.
    Approved,
    /// The server has not been approved.
    Needed,
    /// The server was approved in a different form.
    Changed {
        /// The lines shown at the time of approval.
        before: Vec<String>,
    },
}

/// Error from reading or writing approvals.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalsError {
    /// The file does not contain approvals.
    #[error("`{}` is not a valid approvals file", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Parse error.
        source: serde_json::Error,
    },
    /// The file was written by a newer version of Wharf.
    #[error("`{}` has schema {found}, but this version supports only schema {SCHEMA}", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Schema version found in the file.
        found: u64,
    },
    /// The file cannot be read.
    #[error(transparent)]
    Load(#[from] DocumentLoadError),
    /// The file cannot be written.
    #[error(transparent)]
    Save(DocumentSaveError),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ApprovalRecord {
    #[serde(flatten)]
    key: ApprovalKey,
    digest: Fingerprint,
    /// Seconds since 1970.
    approved_at: u64,
    lines: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct ApprovalDocument {
    schema: u64,
    approvals: Vec<ApprovalRecord>,
}

impl ApprovalStore {
    /// Creates a handle for the file at this path. Does not open it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { document: Document::new(path, DocumentPrivacy::Private) }
    }

    /// Loads all approvals. A missing file contains none.
    pub fn load(&self) -> Result<ApprovalSnapshot, ApprovalsError> {
        let loaded = self.document.load()?;
        self.parse(loaded.as_ref().map(|loaded| loaded.bytes.as_slice()))
    }

    /// Records an approval of the server in exactly this form. Replaces an earlier one.
    pub fn approve(&self, key: &ApprovalKey, what: &ApprovalSubject, at: SystemTime) -> Result<(), ApprovalsError> {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let record = ApprovalRecord {
            key: key.clone(),
            digest: what.digest(),
            approved_at: since.as_secs(),
            lines: what.lines(),
        };
        self.update(|records| {
            records.retain(|known| known.key != *key);
            records.push(record.clone());
        })
    }

    /// Removes an approval. Returns whether there was one.
    pub fn revoke(&self, key: &ApprovalKey) -> Result<bool, ApprovalsError> {
        let mut was_there = false;
        self.update(|records| {
            was_there = records.iter().any(|known| known.key == *key);
            records.retain(|known| known.key != *key);
        })?;
        Ok(was_there)
    }

    /// Removes the approvals of a project, for one server or for all, including servers that are no longer configured.
    /// Returns the sorted names of the servers.
    pub fn revoke_matching(&self, project: &Path, server: Option<&str>) -> Result<Vec<String>, ApprovalsError> {
        let project = file_digests::path_to_text(&canonical_or_same(project));
        let is_meant = |key: &ApprovalKey| key.project == project && server.is_none_or(|server| key.server == server);
        let mut names = BTreeSet::new();
        self.update(|records| {
            // The closure runs again after a concurrent write, so the names are replaced.
            names = records.iter().filter(|known| is_meant(&known.key)).map(|known| known.key.server.clone()).collect();
            records.retain(|known| !is_meant(&known.key));
        })?;
        Ok(names.into_iter().collect())
    }

    /// Compares the server in its current form with the approval. Blocks.
    ///
    /// # Errors
    /// Returns a refusal if they differ or if there is no approval.
    pub(crate) fn check_launch(
        &self,
        key: &ApprovalKey,
        described: &ServerDefinition,
        around: &Environment,
        program: Option<&Path>,
    ) -> Result<(), LaunchRefusal> {
        let what = ApprovalSubject::inspect(described, around);
        let approved = self.load().map_err(|error| LaunchRefusal::Unreadable(error.to_string()))?;
        match approved.state(key, what.digest()) {
            ApprovalState::Approved => {}
            ApprovalState::Needed => return Err(LaunchRefusal::NotApproved),
            ApprovalState::Changed { before } => {
                let is_new = |line: &String| !before.contains(line);
                return Err(LaunchRefusal::Changed(what.lines().into_iter().filter(is_new).collect()));
            }
        }
        let Some(found) = program.map(canonical_or_same) else { return Ok(()) };
        match what.program() {
            Some(approved) if approved == found => Ok(()),
            approved => Err(LaunchRefusal::OtherProgram { approved: approved.map(Path::to_owned), found }),
        }
    }

    fn update(&self, mut change: impl FnMut(&mut Vec<ApprovalRecord>)) -> Result<(), ApprovalsError> {
        let updated = self.document.update(|old| {
            let ApprovalSnapshot(mut records) = self.parse(old)?;
            change(&mut records);
            if old.is_none() && records.is_empty() {
                return Ok(None);
            }
            let form = ApprovalDocument { schema: SCHEMA, approvals: records };
            serde_json::to_vec_pretty(&form).map(Some).map_err(|source| self.damaged_error(source))
        });
        match updated {
            Ok(_) => Ok(()),
            Err(DocumentUpdateError::Edit(error)) => Err(error),
            Err(DocumentUpdateError::Save(error)) => Err(ApprovalsError::Save(error)),
        }
    }

    fn parse(&self, bytes: Option<&[u8]>) -> Result<ApprovalSnapshot, ApprovalsError> {
        /// The member that all schema versions share.
        #[derive(Deserialize)]
        struct ApprovalSchemaHeader {
            schema: u64,
        }
        let Some(bytes) = bytes else { return Ok(ApprovalSnapshot::default()) };
        let damaged = |source| self.damaged_error(source);
        let ApprovalSchemaHeader { schema: found } = serde_json::from_slice(bytes).map_err(damaged)?;
        if found != SCHEMA {
            return Err(ApprovalsError::Newer { path: self.document.path().to_owned(), found });
        }
        serde_json::from_slice::<ApprovalDocument>(bytes).map(|form| ApprovalSnapshot(form.approvals)).map_err(damaged)
    }

    fn damaged_error(&self, source: serde_json::Error) -> ApprovalsError {
        ApprovalsError::Damaged { path: self.document.path().to_owned(), source }
    }
}

impl ApprovalSnapshot {
    /// Reports whether there is any approval of this server. If not, its current form need not be inspected.
    pub fn contains(&self, key: &ApprovalKey) -> bool {
        self.0.iter().any(|known| known.key == *key)
    }

    /// Returns the approval state of a server with this digest.
    pub fn state(&self, key: &ApprovalKey, digest: ApprovalDigest) -> ApprovalState {
        match self.0.iter().find(|known| known.key == *key) {
            None => ApprovalState::Needed,
            Some(known) if known.digest == digest => ApprovalState::Approved,
            Some(known) => ApprovalState::Changed { before: known.lines.clone() },
        }
    }
}

impl ApprovalKey {
    /// Creates the key of a server in a file of a project. Resolves symbolic links, so that each project has one key.
    pub fn new(project: &Path, file: &Path, server: &str) -> Self {
        let folder = canonical_or_same(project);
        let file = canonical_or_same(&folder.join(file.strip_prefix(project).unwrap_or(file)));
        Self {
            project: file_digests::path_to_text(&folder),
            file: file_digests::path_to_text(&file),
            server: server.to_owned(),
        }
    }
}

fn canonical_or_same(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

impl ApprovalsError {
    /// Returns a suggested fix.
    pub fn fix(&self) -> String {
        match self {
            Self::Damaged { path, .. } => {
                format!("delete the file and approve the servers again: rm {}", path.display())
            }
            Self::Newer { .. } => "use the newer version of Wharf that wrote it".to_owned(),
            Self::Load(DocumentLoadError::Unsafe(flaw))
            | Self::Save(DocumentSaveError::Load(DocumentLoadError::Unsafe(flaw))) => flaw.fix(),
            Self::Load(_) | Self::Save(_) => "check the file's permissions and the free disk space".to_owned(),
        }
    }
}
