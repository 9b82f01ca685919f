//! Where a server is defined.

use std::path::Path;
use std::sync::Arc;

/// Where a server is defined. Rules, grants and pins of one origin do not hold for a server of another, whatever its
/// name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerOrigin {
    /// The user's own configuration, a flag, the environment, or the embedding program.
    #[default]
    User,
    /// A file that is not the user's own, such as a project's: its canonical path.
    File(Arc<Path>),
}

impl ServerOrigin {
    /// The user's own configuration, for as long as a reference is needed.
    pub const USER: &'static Self = &Self::User;

    /// Returns the defining file, unless the server is the user's own.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::User => None,
            Self::File(file) => Some(file),
        }
    }
}
