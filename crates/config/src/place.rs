//! Where something stands.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use wharf_spec::Untrusted;

use crate::tree::Position;

/// A place in a file, or in the variable that stands for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file; the name of the variable where it is none.
    pub file: Arc<Path>,
    /// Where in it.
    pub at: Position,
}

/// Shown as `file:line:column`, escaped: a project may have directories of any name.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", Untrusted::new(self.file.to_string_lossy()), self.at)
    }
}
