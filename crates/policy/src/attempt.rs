//! What somebody wants to do, and what is decided about it.

use std::fmt;
use std::sync::Arc;

use wharf_json::Raw;
use wharf_spec::{ServerName, ServerOrigin};

use crate::{Lifetime, SourcedRule};

/// A call of a tool that somebody wants to make.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// Whose tool it is; `None` for a tool that belongs to no server.
    pub server: Option<&'a ServerName>,
    /// Where that server is defined.
    pub origin: &'a ServerOrigin,
    /// What the server calls it, never an alias.
    pub tool: &'a str,
    /// The arguments as they would be sent.
    pub arguments: &'a Raw,
    /// Whether the server's tools are allowed where no rule says otherwise.
    pub trust: bool,
    /// What the call may do at worst.
    pub risk: Risk,
    /// Whether a tool is called or a server is used in another way.
    pub kind: AttemptKind,
}

/// What is done with a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AttemptKind {
    /// A tool is called, one of the server or one that belongs to no server.
    #[default]
    Call,
    /// A tool that belongs to no server uses the server in another way, such as reading a resource. Rules for the tool's
    /// plain name decide, and so do those that deny the whole server.
    Access,
}

/// What a call may do at worst. A server's own hints have no say in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    /// Nothing worth a question: it needs no permission unless a rule says otherwise.
    Low,
    /// Anything.
    High,
}

impl<'a> Attempt<'a> {
    /// A call of a tool of one of the user's own servers: risky, and not trusted.
    pub fn mcp(server: &'a ServerName, tool: &'a str, arguments: &'a Raw) -> Self {
        let origin = ServerOrigin::USER;
        Self { server: Some(server), origin, tool, arguments, trust: false, risk: Risk::High, kind: AttemptKind::Call }
    }

    /// A call of a tool that belongs to no server and goes by its plain name.
    pub fn plain(tool: &'a str, arguments: &'a Raw, risk: Risk) -> Self {
        let (origin, kind) = (ServerOrigin::USER, AttemptKind::Call);
        Self { server: None, origin, tool, arguments, trust: false, risk, kind }
    }

    /// A use of a server that is not a call of one of its tools, by a tool that goes by its plain name.
    pub fn access(
        (server, origin): (&'a ServerName, &'a ServerOrigin),
        tool: &'a str,
        arguments: &'a Raw,
        risk: Risk,
    ) -> Self {
        let (server, kind) = (Some(server), AttemptKind::Access);
        Self { server, origin, tool, arguments, trust: false, risk, kind }
    }
}

/// What is decided, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What is decided.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
}

/// What is decided about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The call is made.
    Allow,
    /// A person is asked; nobody there means no.
    Ask,
    /// The call is not made.
    Deny,
}

/// Why something was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A rule says so.
    Rule(Arc<SourcedRule>),
    /// It would be allowed, but looks like what this rule denies: another case, another width, unusual letters.
    NearDeny(Arc<SourcedRule>),
    /// The server is trusted.
    Trust,
    /// The call can do no harm.
    LowRisk,
    /// A person has said yes before.
    Grant(Lifetime),
    /// It would be allowed, but nobody knows how the server describes the tool.
    Undescribed,
    /// This allow rule names the server, but holds for the one that is defined elsewhere.
    Elsewhere(Arc<SourcedRule>),
    /// Nothing says anything.
    Default,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "rule {rule}"),
            Self::NearDeny(rule) => write!(f, "it looks like what a rule denies: {rule}"),
            Self::Elsewhere(rule) => write!(f, "the rule that allows it is about a server defined elsewhere: {rule}"),
            Self::Trust => f.write_str("the server is trusted"),
            Self::LowRisk => f.write_str("it needs no permission"),
            Self::Grant(Lifetime::Once) => f.write_str("allowed this once"),
            Self::Grant(Lifetime::Session) => f.write_str("allowed for this session"),
            Self::Grant(Lifetime::Always) => f.write_str("always allowed"),
            Self::Undescribed => f.write_str("the tool has no known definition"),
            Self::Default => f.write_str("no rule says anything about it"),
        }
    }
}
