//! What is wrong with a configuration.

use std::fmt;

use crate::Place;

/// Something that is wrong, where, and what to do about it. Texts are escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A stable word for programs.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Where; nowhere for a file that is not there.
    pub place: Option<Place>,
    /// The server it costs, if it is about one.
    pub server: Option<String>,
    /// What is wrong: a lower-case fragment.
    pub text: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It is read as well as it can be.
    Warning,
    /// It costs a server, or a whole file.
    Error,
}

impl Problem {
    pub(crate) fn with_fix(self, fix: &str) -> Self {
        Self { fix: Some(fix.to_owned()), ..self }
    }
}

/// Shown as `file:line:column: text`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.text)
    }
}
