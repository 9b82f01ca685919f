//! What is wrong with a rule, for the person who wrote it.

use std::fmt;
use std::sync::Arc;

use crate::{SourcedRule, Standing};

/// A rule that does not do what somebody may think it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which of the rules, counted from 0 in the order they came in.
    pub index: usize,
    /// The rule.
    pub rule: Arc<SourcedRule>,
    /// What is wrong with it.
    pub kind: ProblemKind,
}

/// What is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The name in it cannot be read: it holds for nothing.
    BadName(&'static str),
    /// The file in it cannot be one: it holds for nothing.
    BadFile(&'static str),
    /// Its pattern cannot be read. An allow is ignored; a deny or an ask holds whatever the arguments.
    BadPattern(&'static str),
    /// It names no server that is configured: it can never match.
    NoServer,
    /// It names none of the tools there are: it does not match yet.
    NoTool,
    /// It is an allow that could mean more than one thing, and is refused.
    Ambiguous,
    /// It is an allow in a project's file, and is ignored.
    ProjectAllow,
    /// It is an allow of plain names by a pattern that looks as if it reached tools of servers too; it does not.
    PlainAllow,
    /// It can never decide anything: this rule goes before it wherever it matches.
    Shadowed(Arc<SourcedRule>),
}

impl Problem {
    /// Whether the rule cannot be read as it was meant, so that starting without it would not be what was asked for. A
    /// rule of a project is none of the user's: calls of its own servers are asked about instead.
    pub fn is_fatal(&self) -> bool {
        self.is_unreadable() && self.rule.origin.standing == Standing::User
    }

    /// Whether the rule cannot be read as it was meant.
    pub fn is_unreadable(&self) -> bool {
        self.kind.is_unreadable()
    }
}

impl ProblemKind {
    /// Whether the rule cannot be read as it was meant.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self, Self::BadName(_) | Self::BadFile(_) | Self::BadPattern(_))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.kind)
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName(what) | Self::BadFile(what) | Self::BadPattern(what) => f.write_str(what),
            Self::NoServer => f.write_str("can never match: it names no configured server"),
            Self::NoTool => f.write_str("matches nothing: no server has such a tool"),
            Self::Ambiguous => f.write_str("refused: it could mean more than one server, and an allow must mean one"),
            Self::ProjectAllow => f.write_str("ignored: a project may deny and ask, but not allow"),
            Self::PlainAllow => f.write_str("allows no tool of any server: write `mcp__*` for those"),
            Self::Shadowed(by) => write!(f, "never decides anything: {by} goes before it"),
        }
    }
}
