//! Origin of a server definition.

use std::path::Path;
use std::sync::Arc;

/// The source of a server definition. Rules, grants and pins for a server of one origin do not apply to a server of the
/// same name from another origin.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerOrigin {
    /// The user's own configuration, a flag, the environment, or the embedding program.
    #[default]
    User,
    /// A file that is not the user's own, such as a project's. Holds its canonical path.
    File(Arc<Path>),
}

impl ServerOrigin {
    /// [`ServerOrigin::User`] as a static reference.
    pub const USER: &'static Self = &Self::User;

    /// Returns the defining file, or `None` if the server is the user's own.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::User => None,
            Self::File(file) => Some(file),
        }
    }
}
