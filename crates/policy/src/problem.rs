//! Problems of permission rules, reported to their author.

use std::fmt;
use std::sync::Arc;

use crate::{RuleAuthority, SourcedRule};

/// A rule that may not have the intended effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    /// Index of the rule in the order of input.
    pub index: usize,
    /// The rule.
    pub rule: Arc<SourcedRule>,
    /// Kind of problem.
    pub kind: RuleProblemKind,
}

/// Kind of problem of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleProblemKind {
    /// The tool name is invalid. The rule has no effect.
    BadName(&'static str),
    /// The file in `definedIn` is invalid. The rule has no effect.
    BadFile(&'static str),
    /// The pattern is invalid. An allow is ignored. A deny or ask applies regardless of the arguments.
    BadPattern(&'static str),
    /// No configured server has the given name. The rule never matches.
    NoServer,
    /// An allow rule has more than one meaning and is rejected.
    Ambiguous,
    /// An allow rule is in a project's file and is ignored.
    ProjectAllow,
    /// An allow rule for plain names has a pattern that seems to include tools of servers, but does not.
    PlainAllow,
    /// The rule never decides: the given rule takes precedence over it.
    Shadowed(Arc<SourcedRule>),
}

impl RuleProblem {
    /// Reports whether the program must not start without this rule: it is the user's own and cannot be interpreted as
    /// intended. For an unreadable rule of a project, calls of the project's servers require a question instead.
    pub fn is_fatal(&self) -> bool {
        self.is_unreadable() && self.rule.origin.authority == RuleAuthority::User
    }

    /// Reports whether the rule cannot be interpreted as intended.
    pub fn is_unreadable(&self) -> bool {
        self.kind.is_unreadable()
    }
}

impl RuleProblemKind {
    /// Reports whether the rule cannot be interpreted as intended.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self, Self::BadName(_) | Self::BadFile(_) | Self::BadPattern(_))
    }
}

impl std::error::Error for RuleProblem {}

impl fmt::Display for RuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.kind)
    }
}

impl fmt::Display for RuleProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName(what) | Self::BadFile(what) | Self::BadPattern(what) => f.write_str(what),
            Self::NoServer => f.write_str("never matches: no configured server has this name"),
            Self::Ambiguous => {
                f.write_str("rejected: the name is ambiguous, and an allow rule must mean exactly one server")
            }
            Self::ProjectAllow => f.write_str("ignored: project files may deny or ask, but not allow"),
            Self::PlainAllow => f.write_str("does not apply to tools of servers: use `mcp__*` for those"),
            Self::Shadowed(by) => write!(f, "has no effect: {by} takes precedence"),
        }
    }
}
