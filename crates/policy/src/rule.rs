//! Rules as they stand in a file.

use std::fmt;

use serde::{Deserialize, Serialize};
use wharf_spec::{Glob, ServerName, ServerOrigin, ToolId, Untrusted};

use crate::target::{Target, admitted};

/// Characters of a rule that are shown.
const SHOWN: usize = 200;

/// What is to be done about calls of some tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which tools: `mcp__<server>__<tool>`, or the plain name of a tool that belongs to no server; globs.
    pub tool: String,
    /// Which arguments: `key=glob`, or a glob over every value; any arguments when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What is to be done.
    pub action: Action,
    /// The file in which the server is defined. An allow that names a server and no file holds for the user's own server
    /// of that name; a deny or an ask without a file holds wherever the server is defined.
    #[serde(default, rename = "definedIn", skip_serializing_if = "Option::is_none")]
    pub defined_in: Option<String>,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The call is made.
    Allow,
    /// A person is asked.
    Ask,
    /// The call is not made, whatever else is said.
    Deny,
}

/// A rule, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedRule {
    /// The rule.
    pub rule: Rule,
    /// Where it stands.
    pub origin: RuleOrigin,
}

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleOrigin {
    /// The file and the line, as a person would look for it: `config.json:12`.
    pub place: String,
    /// Whose file it is.
    pub standing: Standing,
}

/// Whose word a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The user's.
    User,
    /// A project's: it may only deny and ask.
    Project,
}

/// Why a rule cannot say what was wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRule {
    /// There is no server of that name, so nothing can be told about what the rule would mean.
    #[error("no server `{0}` is configured")]
    NoServer(ServerName),
    /// Its spelling also names something else.
    #[error("`{spelling}` could also mean something of another server")]
    Ambiguous {
        /// How the rule would have to be spelt, escaped for display.
        spelling: String,
    },
    /// The name of the tool is longer than a rule may be.
    #[error("the name of the tool is too long for a rule")]
    TooLong,
    /// The file in which its server is defined has a name that is not text.
    #[error("the path of the file that defines the server is not UTF-8")]
    Path,
    /// It holds for certain arguments as a whole, which no pattern expresses.
    #[error("a rule cannot name these arguments and no others")]
    Arguments,
}

impl Rule {
    /// The rule for these tools, whatever the arguments.
    pub fn new(tool: impl Into<String>, action: Action) -> Self {
        Self { tool: tool.into(), pattern: None, action, defined_in: None }
    }

    /// The same rule for a server of this origin.
    pub fn of_origin(self, origin: &ServerOrigin) -> Result<Self, NoRule> {
        let text = |file: &std::path::Path| file.to_str().map(str::to_owned).ok_or(NoRule::Path);
        Ok(Self { defined_in: origin.file().map(text).transpose()?, ..self })
    }

    /// The rule for one tool of one of these servers, whatever the arguments.
    ///
    /// Globs are escaped, and so are underscores that could be taken for the mark between server and tool. Where the
    /// spelling could mean something else even so, there is no such rule.
    pub fn naming(tool: &ToolId, action: Action, servers: &[ServerName]) -> Result<Self, NoRule> {
        if !servers.contains(&tool.server) {
            return Err(NoRule::NoServer(tool.server.clone()));
        }
        let spelling = spelling(tool);
        let Ok(Target::Mcp(readings)) = Target::parse(&spelling) else { return Err(NoRule::TooLong) };
        match admitted(&readings, servers) {
            Ok(reading) if reading.is_exactly(tool) => Ok(Self::new(spelling, action)),
            _ => Err(NoRule::Ambiguous { spelling: Untrusted::new(spelling).shortened(SHOWN).to_string() }),
        }
    }
}

/// `mcp__<server>__<tool>` with an escape wherever a character would mean something else than itself.
fn spelling(tool: &ToolId) -> String {
    let text = format!("mcp__{}__{}", tool.server, Glob::exactly(&tool.tool));
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

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// Shown as ``deny `mcp__fs__write` where `path=/etc/*` as defined in `/x/.mcp.json` ``, escaped and shortened.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.action, Untrusted::new(&*self.tool).shortened(SHOWN))?;
        if let Some(pattern) = &self.pattern {
            write!(f, " where `{}`", Untrusted::new(&**pattern).shortened(SHOWN))?;
        }
        match &self.defined_in {
            Some(file) => write!(f, " as defined in `{}`", Untrusted::new(&**file).shortened(SHOWN)),
            None => Ok(()),
        }
    }
}

/// Shown as the rule and where it stands.
impl fmt::Display for SourcedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.rule, Untrusted::new(&*self.origin.place).shortened(SHOWN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(names: &[&str]) -> Vec<ServerName> {
        names.iter().map(|name| ServerName::new(name).unwrap()).collect()
    }

    #[test]
    fn a_rule_has_one_form_in_a_file() {
        let text = r#"{"tool":"mcp__fs__write","pattern":"path=/etc/*","action":"deny"}"#;
        let rule: Rule = serde_json::from_str(text).unwrap();
        assert_eq!(rule.action, Action::Deny);
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
    fn a_spelling_means_one_tool_or_is_refused() {
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
            let rule = Rule::naming(&tool, Action::Allow, &servers(configured));
            assert_eq!(rule.ok().map(|rule| rule.tool).as_deref(), expected, "{tool}");
        }
    }
}
