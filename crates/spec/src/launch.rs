//! The last check before a server is started or dialled.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Fingerprint;

/// A condition that is checked immediately before every start of a server's process, and before it is dialled.
///
/// It travels with the server's spec, so that no path to a start leads around it. Two checks are equal when they hold a
/// server to the same approval.
#[derive(Clone)]
pub struct LaunchCheck {
    approved: Fingerprint,
    check: Arc<CheckFunction>,
}

type CheckFunction = dyn Fn(Option<&Path>) -> Result<(), LaunchRefusal> + Send + Sync;

/// Why a server is not started or dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchRefusal {
    /// The user has not approved the server, or has withdrawn the approval.
    NotApproved,
    /// Something of what would run has changed since the user approved it; what, one line each, escaped.
    Changed(Vec<String>),
    /// The program that would be started is not the one that the user approved.
    OtherProgram {
        /// The program that the user approved.
        approved: Option<PathBuf>,
        /// The program that would be started.
        found: PathBuf,
    },
    /// The approvals cannot be read; why.
    Unreadable(String),
}

impl LaunchCheck {
    /// A check of a server that was approved under this digest. The function gets the program that is about to be
    /// started, if one is; it may block.
    pub fn new(
        approved: Fingerprint,
        check: impl Fn(Option<&Path>) -> Result<(), LaunchRefusal> + Send + Sync + 'static,
    ) -> Self {
        Self { approved, check: Arc::new(check) }
    }

    /// Checks whether this program may be started, or the server dialled. Blocks.
    ///
    /// # Errors
    /// A [`LaunchRefusal`] where it may not.
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
            Self::NotApproved => f.write_str("it is not approved"),
            Self::Changed(what) => {
                f.write_str("it has changed since you approved it")?;
                what.iter().take(3).try_for_each(|line| write!(f, "; {line}"))
            }
            Self::OtherProgram { approved: Some(approved), found } => write!(
                f,
                "`{}` would be started, and you approved `{}`",
                crate::Untrusted::new(found.to_string_lossy()),
                crate::Untrusted::new(approved.to_string_lossy())
            ),
            Self::OtherProgram { approved: None, found } => write!(
                f,
                "`{}` would be started, and there was no such program when you approved it",
                crate::Untrusted::new(found.to_string_lossy())
            ),
            Self::Unreadable(why) => write!(f, "the approvals cannot be read: {why}"),
        }
    }
}
