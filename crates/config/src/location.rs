//! Locations in configuration files.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use wharf_spec::UntrustedText;

use crate::tree::TextPosition;

/// A location in a file or in the `WHARF_MCP_SERVERS` variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// Path of the file, or name of the variable.
    pub file: Arc<Path>,
    /// Position in the text.
    pub at: TextPosition,
}

/// Displays as `file:line:column`, escaped, since a project may have directories with any name.
impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", UntrustedText::new(self.file.to_string_lossy()), self.at)
    }
}
