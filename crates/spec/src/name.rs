//! What servers and their tools are called here.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use crate::Untrusted;

/// The most characters the name of a server has.
const LONGEST_NAME: usize = 64;

/// What a server is called here: `^[a-zA-Z0-9_-]{1,64}$`. Chosen by a person, never by the server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

/// A text that is no name of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadServerName(String);

/// A tool of a server: the pair itself, which no way of joining the two can blur. The tool's name is the server's own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId {
    /// Whose tool it is.
    pub server: ServerName,
    /// What the server calls it: untrusted.
    pub tool: Arc<str>,
}

impl ServerName {
    /// Takes a name, if it is one.
    pub fn new(name: &str) -> Result<Self, BadServerName> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(fits) {
            return Err(BadServerName(Untrusted::new(name).shortened(100).to_string()));
        }
        Ok(Self(name.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ToolId {
    /// A tool of a server.
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

/// Shown as `server / tool`, the tool escaped.
impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}", self.server, Untrusted::new(&*self.tool).shortened(200))
    }
}

impl fmt::Debug for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

impl fmt::Display for BadServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no name of a server: 1 to {LONGEST_NAME} of A-Z, a-z, 0-9, `_` and `-`", self.0)
    }
}

impl std::error::Error for BadServerName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
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
        assert!(shown.starts_with("`a\\u{1b}[2J` is no name"), "{shown}");
    }
}
