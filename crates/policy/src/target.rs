//! Tool names in rules, parsed into all their possible readings.

use wharf_spec::{Glob, ServerName, ToolId};

use crate::glob_shape::{GlobPiece, glob_covers, glob_pieces};
use crate::problem::RuleProblemKind;

/// Prefix of all names of server tools in a rule.
const MCP_PREFIX: &str = "mcp__";
/// Maximum bytes of a tool name in a rule.
const MAX_NAME_BYTES: usize = 1024;

/// The tools that a rule applies to.
#[derive(Debug, Clone)]
pub(crate) enum RuleTarget {
    /// Tools of servers. Holds every reading of the text.
    Mcp(Vec<NameReading>),
    /// Tools that belong to no server, by plain name.
    Plain,
}

/// One way to split the text after `mcp__` into server and tool.
#[derive(Debug, Clone)]
pub(crate) struct NameReading {
    pub server: Glob,
    pub tool: ToolNamePattern,
    /// Set if the server part has wildcards and contains a possible separator between server and tool.
    crossing: bool,
}

/// A pattern for tool names.
#[derive(Debug, Clone)]
pub(crate) enum ToolNamePattern {
    Any,
    Exact(Box<str>),
    /// A glob, with the literal prefix of all its matches. Most names fail the prefix check.
    Glob(Glob, Box<str>),
}

impl RuleTarget {
    /// Parses the tool name of a rule.
    pub fn parse(text: &str) -> Result<Self, RuleProblemKind> {
        if text.is_empty() {
            return Err(RuleProblemKind::BadName("the tool name is empty"));
        }
        if text.len() > MAX_NAME_BYTES {
            return Err(RuleProblemKind::BadName("the tool name is too long"));
        }
        match text.strip_prefix(MCP_PREFIX) {
            Some("") => Err(RuleProblemKind::BadName("the server name after `mcp__` is missing")),
            Some(rest) => Ok(Self::Mcp(all_readings(rest))),
            None => parse_plain_name(text),
        }
    }
}

fn parse_plain_name(text: &str) -> Result<RuleTarget, RuleProblemKind> {
    let begins_alike = text.get(..MCP_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(MCP_PREFIX));
    if begins_alike {
        return Err(RuleProblemKind::BadName("names of server tools start with `mcp__` in lower case"));
    }
    if text.contains(['(', ')']) {
        return Err(RuleProblemKind::BadName("conditions on arguments belong in the rule's `pattern`"));
    }
    Ok(RuleTarget::Plain)
}

/// Returns the text as a server name alone, and split at each unescaped `__` between two non-empty parts.
fn all_readings(rest: &str) -> Vec<NameReading> {
    let split = |mark: usize| (&rest[..mark], &rest[mark + 2..]);
    let both = |(server, tool): &(&str, &str)| !server.is_empty() && !tool.is_empty();
    let splits = separator_positions(rest).into_iter().map(split).filter(both);
    let alone = NameReading::new(rest, ToolNamePattern::Any);
    std::iter::once(alone)
        .chain(splits.map(|(server, tool)| NameReading::new(server, ToolNamePattern::new(tool))))
        .collect()
}

/// Returns the positions of two consecutive unescaped underscores.
fn separator_positions(text: &str) -> Vec<usize> {
    let list = glob_pieces(text);
    let is_plain = |(at, piece): (usize, GlobPiece)| piece == GlobPiece::One('_') && text.as_bytes()[at] == b'_';
    list.windows(2).filter(|pair| is_plain(pair[0]) && is_plain(pair[1])).map(|pair| pair[0].0).collect()
}

impl NameReading {
    fn new(server: &str, tool: ToolNamePattern) -> Self {
        let glob = Glob::new(server);
        let crossing = !glob.is_exact() && !separator_positions(server).is_empty();
        Self { server: glob, tool, crossing }
    }

    /// Reports whether the reading names exactly this tool.
    pub fn is_exactly(&self, tool: &ToolId) -> bool {
        let same_tool = matches!(&self.tool, ToolNamePattern::Exact(name) if **name == *tool.tool);
        same_tool && self.server.is_exact() && self.server.matches(tool.server.as_str())
    }

    /// Reports whether the server part matches all servers, as in `mcp__*`.
    pub fn matches_every_server(&self) -> bool {
        self.server.as_str().bytes().all(|byte| byte == b'*')
    }

    /// Reports whether the reading names one tool of one server.
    pub fn is_exact(&self) -> bool {
        self.server.is_exact() && matches!(self.tool, ToolNamePattern::Exact(_))
    }

    /// Reports whether the reading includes everything that another matches.
    pub fn covers(&self, other: &Self) -> bool {
        glob_covers(self.server.as_str(), other.server.as_str()) && self.tool.covers(&other.tool)
    }

    /// Returns the full pattern for the names that the reading matches.
    pub fn spelling(&self) -> String {
        format!("{MCP_PREFIX}{}__{}", self.server, self.tool.to_pattern())
    }

    /// Reports whether the reading matches any of these servers.
    pub fn matches_any_server(&self, servers: &[ServerName]) -> bool {
        servers.iter().any(|server| self.server.matches(server.as_str()))
    }

    /// Reports whether, for these servers, the reading includes everything that another matches.
    fn covers_for_servers(&self, other: &Self, servers: &[ServerName]) -> bool {
        let mut met = servers.iter().filter(|server| other.server.matches(server.as_str()));
        self.tool.covers(&other.tool) && met.all(|server| self.server.matches(server.as_str()))
    }
}

/// Returns the one reading that an allow may have, given the configured servers.
///
/// A wildcard does not match across the separator between server and tool: `mcp__a__*` allows nothing of a server
/// `a__b`.
///
/// # Errors
/// Returns [`RuleProblemKind::NoServer`] or [`RuleProblemKind::Ambiguous`] if there is no such reading.
pub(crate) fn unambiguous_reading<'a>(
    readings: &'a [NameReading],
    servers: &[ServerName],
) -> Result<&'a NameReading, RuleProblemKind> {
    let fitting: Vec<&NameReading> = readings.iter().filter(|reading| reading.matches_any_server(servers)).collect();
    if fitting.iter().all(|reading| reading.crossing) {
        return Err(RuleProblemKind::NoServer);
    }
    let holds_all = |one: &&&NameReading| fitting.iter().all(|other| one.covers_for_servers(other, servers));
    fitting.iter().filter(|reading| !reading.crossing).find(holds_all).copied().ok_or(RuleProblemKind::Ambiguous)
}

impl ToolNamePattern {
    /// Parses a pattern for tool names.
    pub fn new(text: &str) -> Self {
        if text.bytes().all(|byte| byte == b'*') {
            return Self::Any;
        }
        let steps = glob_pieces(text);
        let fixed =
            steps.iter().map_while(|(_, piece)| if let GlobPiece::One(one) = piece { Some(*one) } else { None });
        let beginning: String = fixed.collect();
        if beginning.chars().count() == steps.len() {
            return Self::Exact(beginning.into());
        }
        Self::Glob(Glob::new(text), beginning.into())
    }

    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(exact) => **exact == *name,
            Self::Glob(glob, beginning) => name.starts_with(&**beginning) && glob.matches(name),
        }
    }

    /// Returns the number of literal characters.
    pub fn literal_count(&self) -> usize {
        match self {
            Self::Any => 0,
            Self::Exact(name) => name.chars().count(),
            Self::Glob(glob, _) => glob.literal_count(),
        }
    }

    /// Returns the pattern as text.
    pub fn to_pattern(&self) -> String {
        match self {
            Self::Any => "*".to_owned(),
            Self::Exact(name) => Glob::from_literal(name).as_str().to_owned(),
            Self::Glob(glob, _) => glob.as_str().to_owned(),
        }
    }

    fn covers(&self, other: &Self) -> bool {
        glob_covers(&self.to_pattern(), &other.to_pattern())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let Ok(RuleTarget::Mcp(readings)) = RuleTarget::parse(text) else { return Vec::new() };
        readings.iter().map(|reading| format!("{} / {}", reading.server, reading.tool.to_pattern())).collect()
    }

    #[test]
    fn target_yields_every_reading() {
        for (text, expected) in [
            ("mcp__*", &["* / *"][..]),
            ("mcp__x", &["x / *"]),
            ("mcp__x__*", &["x__* / *", "x / *"]),
            ("mcp__a__b__c", &["a__b__c / *", "a / b__c", "a__b / c"]),
            ("mcp__a___b", &["a___b / *", "a / _b", "a_ / b"]),
            (r"mcp__a\_\_b__c", &[r"a\_\_b__c / *", r"a\_\_b / c"]),
            ("mcp__x__", &["x__ / *"]),
            ("mcp____x", &["__x / *"]),
            ("mcp__", &[]),
            ("Bash", &[]),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn allow_needs_an_unambiguous_reading() {
        for (text, configured, expected) in [
            ("mcp__a__b", &["a"][..], Ok("a / b")),
            ("mcp__a__b", &["a__b"], Ok("a__b / *")),
            ("mcp__a__b", &["a", "a__b"], Err(RuleProblemKind::Ambiguous)),
            ("mcp__a__*", &["a", "a__b"], Err(RuleProblemKind::Ambiguous)),
            ("mcp__a__*", &["a__b"], Err(RuleProblemKind::NoServer)),
            ("mcp__a__b", &["c"], Err(RuleProblemKind::NoServer)),
            ("mcp__*", &["a", "a__b", "c"], Ok("* / *")),
            ("mcp__*__*", &["a", "a__b", "c"], Ok("* / *")),
            ("mcp__*__x", &["a", "b"], Ok("* / x")),
            ("mcp__*__x", &["a", "b__x"], Err(RuleProblemKind::Ambiguous)),
            ("mcp__A", &["a"], Err(RuleProblemKind::NoServer)),
        ] {
            let servers: Vec<_> = configured.iter().map(|name| ServerName::new(name).unwrap()).collect();
            let Ok(RuleTarget::Mcp(readings)) = RuleTarget::parse(text) else { panic!("{text}") };
            let found = unambiguous_reading(&readings, &servers);
            let found = found.map(|reading| format!("{} / {}", reading.server, reading.tool.to_pattern()));
            assert_eq!(found, expected.map(str::to_owned), "{text} on {configured:?}");
        }
    }
}
