//! How loading a skill can fail. Whatever the reason, nothing of it was given out.

use super::shown;
use crate::error::CallError;

/// Why a skill, or a file of one, is not to be had.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// There is no answer to verify.
    #[error(transparent)]
    Call(#[from] CallError),
    /// What the server sent is not what its entry promised.
    #[error("the skill is not what its entry says: {0}")]
    Mismatch(Mismatch),
    /// The entry lists no such file, so it was not asked for.
    #[error("the skill has no file `{path}`")]
    Unlisted {
        /// What was asked for; escaped.
        path: String,
    },
    /// The answer is no file.
    #[error("`{uri}` cannot be used: {problem}")]
    Content {
        /// The file; escaped.
        uri: String,
        /// What is wrong with it; escaped.
        problem: String,
    },
    /// More files than a skill may have. Nothing was read.
    #[error("the skill has {count} files, more than {limit}")]
    TooManyFiles {
        /// How many it lists.
        count: usize,
        /// How many it may have.
        limit: usize,
    },
    /// More bytes than a skill may have.
    #[error("the skill is too large: more than {limit} bytes")]
    TooLarge {
        /// How many it may have.
        limit: u64,
    },
    /// The skill was loaded from another server, and a skill reads only from its own.
    #[error("the skill is from server `{expected}` and cannot read from `{found}`")]
    OtherServer {
        /// Where it is from.
        expected: String,
        /// Where the read would have gone.
        found: String,
    },
}

/// What differed. All of it is escaped and shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} of `{uri}` is {found}, not {expected}")]
pub struct Mismatch {
    /// The file.
    pub uri: String,
    /// `size`, `digest`, or the field of the front matter.
    pub what: String,
    /// What the entry says.
    pub expected: String,
    /// What came.
    pub found: String,
}

impl SkillError {
    /// Whether the server's entry and its files disagree: it may have changed the skill, so that its current entry is
    /// worth fetching and has to be approved anew.
    pub fn is_mismatch(&self) -> bool {
        matches!(self, Self::Mismatch(_) | Self::Unlisted { .. })
    }

    pub(super) fn unlisted(path: &str) -> Self {
        Self::Unlisted { path: shown(path) }
    }

    pub(super) fn content(uri: &str, problem: &str) -> Self {
        Self::Content { uri: shown(uri), problem: shown(problem) }
    }

    pub(super) fn mismatch(uri: &str, what: &str, expected: &str, found: &str) -> Self {
        Self::Mismatch(Mismatch { uri: shown(uri), what: shown(what), expected: shown(expected), found: shown(found) })
    }
}
