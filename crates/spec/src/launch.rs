//! Check that runs right before a server is started or dialled.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Fingerprint;

/// A check that runs immediately before every start of a server's process and before every connection to a remote
/// server.
///
/// The check is part of the server's specification, so every code path that starts the server runs it. Two checks are
/// equal if they refer to the same approval.
#[derive(Clone)]
pub struct LaunchCheck {
    approved: Fingerprint,
    check: Arc<CheckFunction>,
}

type CheckFunction = dyn Fn(Option<&Path>) -> Result<(), LaunchRefusal> + Send + Sync;

/// Reason for which a server is not started or dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchRefusal {
    /// The user has not approved the server, or has withdrawn the approval.
    NotApproved,
    /// The server has changed since the user approved it. One escaped line per change.
    Changed(Vec<String>),
    /// The program that would be started is not the approved one.
    OtherProgram {
        /// The approved program, if it existed at the time of approval.
        approved: Option<PathBuf>,
        /// The program that would be started.
        found: PathBuf,
    },
    /// The approvals cannot be read. Holds the reason.
    Unreadable(String),
}

impl LaunchCheck {
    /// Creates a check for a server that was approved under this digest. The function receives the program that is
    /// about to be started, if any. It may block.
    pub fn new(
        approved: Fingerprint,
        check: impl Fn(Option<&Path>) -> Result<(), LaunchRefusal> + Send + Sync + 'static,
    ) -> Self {
        Self { approved, check: Arc::new(check) }
    }

    /// Checks that this program may be started, or that the server may be dialled. Blocks.
    ///
    /// # Errors
    /// Returns a [`LaunchRefusal`] if it may not.
    pub fn check(&self, program: Option<&Path>) -> Result<(), LaunchRefusal> {
        (self.check)(program)
    }
}

impl PartialEq for LaunchCheck {
    fn eq(&self, other: &Self) -> bool {
        self.approved == other.approved
    }
}

impl Eq for LaunchCheck {}

impl fmt::Debug for LaunchCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LaunchCheck").field(&self.approved).finish()
    }
}

impl std::error::Error for LaunchRefusal {}

impl fmt::Display for LaunchRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotApproved => f.write_str("not approved"),
            Self::Changed(what) => {
                f.write_str("changed since it was approved")?;
                what.iter().take(3).try_for_each(|line| write!(f, "; {line}"))
            }
            Self::OtherProgram { approved: Some(approved), found } => write!(
                f,
                "would start `{}`, but `{}` was approved",
                crate::UntrustedText::new(found.to_string_lossy()),
                crate::UntrustedText::new(approved.to_string_lossy())
            ),
            Self::OtherProgram { approved: None, found } => write!(
                f,
                "would start `{}`, which did not exist when the server was approved",
                crate::UntrustedText::new(found.to_string_lossy())
            ),
            Self::Unreadable(why) => write!(f, "cannot read approvals: {why}"),
        }
    }
}
