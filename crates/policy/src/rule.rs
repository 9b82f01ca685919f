//! Permission rules as stored in files.

use std::fmt;

use serde::{Deserialize, Serialize};
use wharf_spec::{Glob, ServerName, ServerOrigin, ToolId, UntrustedText};

use crate::target::{RuleTarget, unambiguous_reading};

/// Maximum displayed characters of each part of a rule.
const MAX_SHOWN_CHARS: usize = 200;

/// A permission rule for calls of certain tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Tool name as a glob: `mcp__<server>__<tool>`, or the plain name of a tool that belongs to no server.
    pub tool: String,
    /// Argument pattern: `key=glob`, or a glob over every value. `None` matches any arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Action for matching calls.
    pub action: RuleAction,
    /// File that defines the server. Without a file, an allow that names a server applies to the user's own server of
    /// that name, and a deny or ask applies to all origins.
    #[serde(default, rename = "definedIn", skip_serializing_if = "Option::is_none")]
    pub defined_in: Option<String>,
}

/// Action of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleAction {
    /// The call is made.
    Allow,
    /// The user is asked.
    Ask,
    /// The call is not made. Takes precedence over all other rules.
    Deny,
}

/// A rule and its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedRule {
    /// The rule.
    pub rule: Rule,
    /// Location of the rule.
    pub origin: RuleOrigin,
}

/// Location of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleOrigin {
    /// File and line for display, such as `config.json:12`.
    pub place: String,
    /// Owner of the file.
    pub authority: RuleAuthority,
}

/// Owner of the file that contains a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleAuthority {
    /// The user.
    User,
    /// A project. Its rules may only deny and ask.
    Project,
}

/// Reason for which a rule cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleWriteError {
    /// No configured server has this name, so the rule's meaning is undefined.
    #[error("no server `{0}` is configured")]
    NoServer(ServerName),
    /// The spelling also matches something else.
    #[error("`{spelling}` is ambiguous: it could also match another server")]
    Ambiguous {
        /// The required spelling, escaped for display.
        spelling: String,
    },
    /// The tool's name exceeds the maximum length of a rule.
    #[error("the tool name is too long for a rule")]
    TooLong,
    /// The path of the file that defines the server is not UTF-8.
    #[error("the path of the file that defines the server is not valid UTF-8")]
    Path,
    /// A client of a gateway gave the permission, and a rule would hold for every client.
    #[error("a rule would hold for every client, not for this one only")]
    OneClient,
}

impl Rule {
    /// Creates a rule for these tools with any arguments.
    pub fn new(tool: impl Into<String>, action: RuleAction) -> Self {
        Self { tool: tool.into(), pattern: None, action, defined_in: None }
    }

    /// Creates a rule that allows these tools with any arguments.
    pub fn allow(tool: impl Into<String>) -> Self {
        Self::new(tool, RuleAction::Allow)
    }

    /// Creates a rule that requires a prompt for these tools with any arguments.
    pub fn ask(tool: impl Into<String>) -> Self {
        Self::new(tool, RuleAction::Ask)
    }

    /// Creates a rule that denies these tools with any arguments.
    pub fn deny(tool: impl Into<String>) -> Self {
        Self::new(tool, RuleAction::Deny)
    }

    /// Restricts the rule to a server of this origin.
    pub fn with_origin(self, origin: &ServerOrigin) -> Result<Self, RuleWriteError> {
        let text = |file: &std::path::Path| file.to_str().map(str::to_owned).ok_or(RuleWriteError::Path);
        Ok(Self { defined_in: origin.file().map(text).transpose()?, ..self })
    }

    /// Creates a rule for one tool of one of these servers with any arguments.
    ///
    /// Escapes glob characters, and underscores that could be taken for the separator between server and tool.
    ///
    /// # Errors
    /// Returns [`RuleWriteError`] if the server is unknown, the name is too long, or the spelling is still ambiguous.
    pub fn for_tool(tool: &ToolId, action: RuleAction, servers: &[ServerName]) -> Result<Self, RuleWriteError> {
        if !servers.contains(&tool.server) {
            return Err(RuleWriteError::NoServer(tool.server.clone()));
        }
        let spelling = escape_tool_name(tool);
        let Ok(RuleTarget::Mcp(readings)) = RuleTarget::parse(&spelling) else { return Err(RuleWriteError::TooLong) };
        match unambiguous_reading(&readings, servers) {
            Ok(reading) if reading.is_exactly(tool) => Ok(Self::new(spelling, action)),
            _ => Err(RuleWriteError::Ambiguous {
                spelling: UntrustedText::new(spelling).truncate(MAX_SHOWN_CHARS).to_string(),
            }),
        }
    }
}

/// Returns `mcp__<server>__<tool>` with special characters escaped.
fn escape_tool_name(tool: &ToolId) -> String {
    let text = format!("mcp__{}__{}", tool.server, Glob::from_literal(&tool.tool));
    let mark = "mcp__".len() + tool.server.as_str().len();
    let bytes = text.as_bytes();
    let is_underscore = |at: usize| bytes.get(at) == Some(&b'_');
    let mut spelt = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        let is_mark = at < "mcp__".len() || at == mark || at == mark + 1;
        if character == '_' && !is_mark && (is_underscore(at - 1) || is_underscore(at + 1)) {
            spelt.push('\\');
        }
        spelt.push(character);
    }
    spelt
}

impl fmt::Display for RuleAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// Displays as ``deny `mcp__fs__write` where `path=/etc/*` as defined in `/x/.mcp.json` ``, escaped and shortened.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.action, UntrustedText::new(&*self.tool).truncate(MAX_SHOWN_CHARS))?;
        if let Some(pattern) = &self.pattern {
            write!(f, " where `{}`", UntrustedText::new(&**pattern).truncate(MAX_SHOWN_CHARS))?;
        }
        match &self.defined_in {
            Some(file) => write!(f, " as defined in `{}`", UntrustedText::new(&**file).truncate(MAX_SHOWN_CHARS)),
            None => Ok(()),
        }
    }
}

/// A rule of the program itself, with the authority of its user.
impl From<Rule> for SourcedRule {
    fn from(rule: Rule) -> Self {
        Self { rule, origin: RuleOrigin { place: "program".to_owned(), authority: RuleAuthority::User } }
    }
}

/// Displays the rule and its location.
impl fmt::Display for SourcedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.rule, UntrustedText::new(&*self.origin.place).truncate(MAX_SHOWN_CHARS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(names: &[&str]) -> Vec<ServerName> {
        names.iter().map(|name| ServerName::new(name).unwrap()).collect()
    }

    #[test]
    fn rules_round_trip_and_reject_unknown_forms() {
        let text = r#"{"tool":"mcp__fs__write","pattern":"path=/etc/*","action":"deny"}"#;
        let rule: Rule = serde_json::from_str(text).unwrap();
        assert_eq!(rule.action, RuleAction::Deny);
        assert_eq!(serde_json::to_string(&rule).unwrap(), text);
        for text in [
            r#"{"tool":"x","action":"Deny"}"#,
            r#"{"tool":"x","action":"deny","paths":"y"}"#,
            r#"{"tool":"x"}"#,
            r#"{"action":"deny"}"#,
            r#"{"tool":["x"],"action":"deny"}"#,
        ] {
            assert!(serde_json::from_str::<Rule>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rule_for_a_tool_is_unambiguous_or_rejected() {
        for (configured, server, tool, expected) in [
            (&["git"][..], "git", "read_file", Some("mcp__git__read_file")),
            (&["my_git"], "my_git", "x", Some("mcp__my_git__x")),
            (&["git"], "git", "a*b?\\", Some(r"mcp__git__a\*b\?\\")),
            (&["a__b", "a"], "a__b", "c", Some(r"mcp__a\_\_b__c")),
            (&["a_", "a"], "a_", "c", Some(r"mcp__a\___c")),
            (&["a_", "a"], "a", "_c", Some(r"mcp__a__\_c")),
            (&["a", "a__b"], "a", "b", None),
            (&["a", "a__b"], "a", "b__c", Some(r"mcp__a__b\_\_c")),
            (&["b"], "a", "c", None),
            (&["git"], "git", "ﬁnd ü", Some("mcp__git__ﬁnd ü")),
        ] {
            let tool = ToolId::new(&ServerName::new(server).unwrap(), tool);
            let rule = Rule::for_tool(&tool, RuleAction::Allow, &servers(configured));
            assert_eq!(rule.ok().map(|rule| rule.tool).as_deref(), expected, "{tool}");
        }
    }
}
