//! Attempted calls and the decisions about them.

use std::fmt;
use std::sync::Arc;

use wharf_json::RawJson;
use wharf_spec::{ServerName, ServerOrigin};

use crate::{GrantLifetime, SourcedRule};

/// A tool call that is about to be made, or another use of a server.
#[derive(Debug, Clone, Copy)]
pub struct CallAttempt<'a> {
    /// Server of the tool. `None` for a tool that belongs to no server.
    pub server: Option<&'a ServerName>,
    /// Origin of that server's definition.
    pub origin: &'a ServerOrigin,
    /// Name of the tool at the server, never an alias.
    pub tool: &'a str,
    /// Arguments as they would be sent.
    pub arguments: &'a RawJson,
    /// Allows the server's tools if no rule matches.
    pub trust: bool,
    /// Highest risk of the call.
    pub risk: RiskLevel,
    /// Kind of use: a tool call, or another access to a server.
    pub kind: AttemptKind,
}

/// Kind of use of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AttemptKind {
    /// A call of a server's tool, or of a tool that belongs to no server.
    #[default]
    Call,
    /// Another use of the server by a tool that belongs to no server, such as reading a resource. Rules for the tool's
    /// plain name decide, and rules that deny the whole server apply as well.
    Access,
}

/// Highest risk of a call. A server's own hints do not affect it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RiskLevel {
    /// Harmless. Needs no permission unless a rule matches.
    Low,
    /// May have any effect.
    High,
}

impl<'a> CallAttempt<'a> {
    /// Creates a call of a tool of one of the user's own servers, with high risk and without trust.
    pub fn server_tool(server: &'a ServerName, tool: &'a str, arguments: &'a RawJson) -> Self {
        let origin = ServerOrigin::USER;
        Self {
            server: Some(server),
            origin,
            tool,
            arguments,
            trust: false,
            risk: RiskLevel::High,
            kind: AttemptKind::Call,
        }
    }

    /// Creates a call of a tool that belongs to no server, by its plain name.
    pub fn builtin_tool(tool: &'a str, arguments: &'a RawJson, risk: RiskLevel) -> Self {
        let (origin, kind) = (ServerOrigin::USER, AttemptKind::Call);
        Self { server: None, origin, tool, arguments, trust: false, risk, kind }
    }

    /// Turns the call of a tool that belongs to no server into an access to a server.
    pub fn accessing(self, server: &'a ServerName, origin: &'a ServerOrigin) -> Self {
        Self { server: Some(server), origin, kind: AttemptKind::Access, ..self }
    }
}

/// A verdict of the rules and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyDecision {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason for the verdict.
    pub reason: DecisionReason,
}

/// The verdict on an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The call is made.
    Allow,
    /// The user is asked. If no user can be asked, the call is denied.
    Ask,
    /// The call is not made.
    Deny,
}

/// The reason for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecisionReason {
    /// A rule matches.
    Rule(Arc<SourcedRule>),
    /// The attempt would be allowed, but resembles one that this rule denies: another case or width, or unusual
    /// letters.
    NearDeny(Arc<SourcedRule>),
    /// The server is trusted.
    Trust,
    /// The call has low risk.
    LowRisk,
    /// The user has granted it earlier.
    Grant(GrantLifetime),
    /// The attempt would be allowed, but the server's definition of the tool is unknown.
    Undescribed,
    /// This allow rule names the server, but applies to a server of that name with another origin.
    Elsewhere(Arc<SourcedRule>),
    /// No rule matches.
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

impl fmt::Display for DecisionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "rule {rule}"),
            Self::NearDeny(rule) => write!(f, "resembles a call that this rule denies: {rule}"),
            Self::Elsewhere(rule) => write!(f, "the matching allow rule applies to a server defined elsewhere: {rule}"),
            Self::Trust => f.write_str("the server is trusted"),
            Self::LowRisk => f.write_str("low risk, no permission required"),
            Self::Grant(GrantLifetime::Once) => f.write_str("allowed this once"),
            Self::Grant(GrantLifetime::Session) => f.write_str("allowed for this session"),
            Self::Grant(GrantLifetime::Always) => f.write_str("always allowed"),
            Self::Undescribed => f.write_str("the tool's definition is unknown"),
            Self::Default => f.write_str("no permission rule matches this tool"),
        }
    }
}
