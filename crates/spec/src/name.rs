//! Names of servers and their tools.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use crate::UntrustedText;

/// Maximum length of a server name.
const MAX_NAME_LENGTH: usize = 64;

/// The configured name of a server: `^[a-zA-Z0-9_-]{1,64}$`. Chosen by the user, never by the server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

/// The error for an invalid server name. Holds the text, escaped and shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidServerName(String);

/// A tool of a server. The two names are stored separately, because any joined form would be ambiguous. The tool's name
/// is the one that the server uses.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId {
    /// Server that offers the tool.
    pub server: ServerName,
    /// Name of the tool at the server. Untrusted.
    pub tool: Arc<str>,
}

impl ServerName {
    /// Validates a server name.
    ///
    /// # Errors
    /// Returns [`InvalidServerName`] if the name is empty, too long or has other characters.
    pub fn new(name: &str) -> Result<Self, InvalidServerName> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.is_empty() || name.len() > MAX_NAME_LENGTH || !name.bytes().all(fits) {
            return Err(InvalidServerName(UntrustedText::new(name).truncate(100).to_string()));
        }
        Ok(Self(name.into()))
    }

    /// Returns the name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ToolId {
    /// Creates the identifier of a server's tool.
    pub fn new(server: &ServerName, tool: impl Into<Arc<str>>) -> Self {
        Self { server: server.clone(), tool: tool.into() }
    }
}

impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// Displays as `server / tool`, with the tool name escaped.
impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}", self.server, UntrustedText::new(&*self.tool).truncate(200))
    }
}

impl fmt::Debug for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

impl fmt::Display for InvalidServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a valid server name: use 1 to {MAX_NAME_LENGTH} characters of A-Z, a-z, 0-9, `_` and `-`",
            self.0
        )
    }
}

impl std::error::Error for InvalidServerName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_ascii_server_names_are_valid() {
        for (name, fits) in [
            ("git", true),
            ("My-server_2", true),
            (&"a".repeat(64), true),
            (&"a".repeat(65), false),
            ("", false),
            ("a b", false),
            ("a.b", false),
            ("sеarch", false),
            ("a\n", false),
        ] {
            assert_eq!(ServerName::new(name).is_ok(), fits, "{name}");
        }
        let shown = ServerName::new("a\u{1b}[2J").unwrap_err().to_string();
        assert!(shown.starts_with("`a\\u{1b}[2J` is not a valid server name"), "{shown}");
    }
}
