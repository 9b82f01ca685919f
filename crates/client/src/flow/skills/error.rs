//! Errors of loading a skill. No content is returned on error.

use super::escape_short;
use crate::error::CallError;

/// The reason a skill or one of its files cannot be loaded.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The request failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The content does not match the entry.
    #[error("skill does not match its entry: {0}")]
    Mismatch(SkillMismatch),
    /// The entry does not list the file. It was not requested.
    #[error("skill has no file `{path}`")]
    Unlisted {
        /// The requested path, escaped.
        path: String,
    },
    /// The result is not a file.
    #[error("`{uri}` cannot be used: {problem}")]
    Content {
        /// The file, escaped.
        uri: String,
        /// Description of the problem, escaped.
        problem: String,
    },
    /// The skill exceeds the maximum number of files. No file was read.
    #[error("skill has {count} files, the limit is {limit}")]
    TooManyFiles {
        /// Number of listed files.
        count: usize,
        /// Maximum number of files.
        limit: usize,
    },
    /// The skill exceeds the maximum size.
    #[error("skill is larger than {limit} bytes")]
    TooLarge {
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The skill was loaded from another server. Its files can only be read from that server.
    #[error("skill belongs to server `{expected}`, its files cannot be read from `{found}`")]
    OtherServer {
        /// Server the skill was loaded from.
        expected: String,
        /// Server of the rejected read.
        found: String,
    },
}

/// A difference between entry and content. All fields are escaped and shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} of `{uri}` is {found}, expected {expected}")]
pub struct SkillMismatch {
    /// The file.
    pub uri: String,
    /// `size`, `digest`, or the field of the front matter.
    pub what: String,
    /// Value in the entry.
    pub expected: String,
    /// Value found.
    pub found: String,
}

impl SkillError {
    /// Reports whether the entry and the files disagree. The server may have changed the skill: its current entry has
    /// to be fetched and approved again.
    pub fn is_mismatch(&self) -> bool {
        matches!(self, Self::Mismatch(_) | Self::Unlisted { .. })
    }

    pub(super) fn unlisted(path: &str) -> Self {
        Self::Unlisted { path: escape_short(path) }
    }

    pub(super) fn content(uri: &str, problem: &str) -> Self {
        Self::Content { uri: escape_short(uri), problem: escape_short(problem) }
    }

    pub(super) fn mismatch(uri: &str, what: &str, expected: &str, found: &str) -> Self {
        Self::Mismatch(SkillMismatch {
            uri: escape_short(uri),
            what: escape_short(what),
            expected: escape_short(expected),
            found: escape_short(found),
        })
    }
}
