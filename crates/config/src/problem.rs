//! Problems of a configuration.

use std::fmt;

use crate::SourceLocation;

/// A problem, its location and a suggested fix. Texts are escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Stable error code.
    pub code: &'static str,
    /// Severity.
    pub severity: ProblemSeverity,
    /// Location, if known.
    pub place: Option<SourceLocation>,
    /// Server that the problem affects, if any.
    pub server: Option<String>,
    /// Description: a lower-case fragment.
    pub text: String,
    /// Suggested fix.
    pub fix: Option<String>,
}

/// Severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemSeverity {
    /// The value is used as far as possible.
    Warning,
    /// A server or a whole file is unusable.
    Error,
}

impl ConfigProblem {
    pub(crate) fn with_fix(self, fix: &str) -> Self {
        Self { fix: Some(fix.to_owned()), ..self }
    }
}

/// Displays as `file:line:column: text`.
impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.text)
    }
}

impl std::error::Error for ConfigProblem {}
