//! Resolution of tool names typed by people.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use wharf_spec::{ToolId, UntrustedText};
use wharf_tools::{NameLookup, closest_name};

use super::snapshot::Catalog;
use super::tool::CatalogTool;

/// Separators between a server and its tool.
const SEPARATORS: [&str; 5] = ["::", "__", ".", "/", ":"];

/// Error of resolving a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolResolveError {
    /// No tool matches.
    Unknown {
        /// The name as given.
        name: String,
        /// A similar name.
        nearest: Option<Arc<str>>,
    },
    /// Several tools match.
    Ambiguous {
        /// The name as given.
        name: String,
        /// The tools that match.
        candidates: Vec<ToolId>,
    },
}

impl Catalog {
    /// Finds a tool by its alias, by its displayed name, or by server and tool: separated by `.`, `/`, `:`, `::` or
    /// `__`, prefixed with `mcp__` or `mcp_`, or as `tool@server`.
    ///
    /// An alias takes precedence, then the displayed name. Otherwise every server is tried instead of splitting at a
    /// separator.
    ///
    /// # Errors
    ///
    /// Returns an error if the name matches no tool or more than one.
    pub fn resolve(&self, name: &str) -> Result<&Arc<CatalogTool>, ToolResolveError> {
        let readings = match self.names.find(name) {
            NameLookup::One(tool) => return Ok(tool),
            NameLookup::Several(held) => held.into_iter().map(|held| &held.value).collect(),
            NameLookup::Nothing => self.candidates(name),
        };
        let mut shown = readings.iter().filter(|tool| *tool.description.shown == *name);
        match (shown.next(), shown.next(), &readings[..]) {
            (Some(tool), None, _) | (None, _, [tool]) => Ok(tool),
            (_, _, []) => Err(ToolResolveError::Unknown { name: name.to_owned(), nearest: self.suggest(name) }),
            _ => {
                let candidates = readings.iter().map(|tool| tool.id.clone()).collect();
                Err(ToolResolveError::Ambiguous { name: name.to_owned(), candidates })
            }
        }
    }

    fn candidates(&self, name: &str) -> Vec<&Arc<CatalogTool>> {
        let mut readings: Vec<&Arc<CatalogTool>> = Vec::new();
        for section in self.sections() {
            for tool in possible_tool_names(section.server.as_str(), name).filter_map(|tool| section.tool(tool)) {
                if !readings.iter().any(|known| Arc::ptr_eq(known, tool)) {
                    readings.push(tool);
                }
            }
        }
        readings
    }

    /// Returns the most similar displayed name, with any separator.
    fn suggest(&self, said: &str) -> Option<Arc<str>> {
        let as_shown = |tool: &Arc<CatalogTool>| tool.description.shown.to_string();
        let joined = |tool: &Arc<CatalogTool>| format!("{}/{}", tool.id.server, tool.id.tool);
        self.most_similar(said, as_shown).or_else(|| {
            let plain = said.strip_prefix("mcp__").unwrap_or(said);
            let separator = SEPARATORS.into_iter().find(|separator| plain.contains(separator))?;
            self.most_similar(&plain.replacen(separator, "/", 1), joined)
        })
    }

    fn most_similar(&self, said: &str, spelling: impl Fn(&Arc<CatalogTool>) -> String) -> Option<Arc<str>> {
        let spelt: HashMap<String, &Arc<str>> =
            self.tools().map(|tool| (spelling(tool), &tool.description.shown)).collect();
        closest_name(said, spelt.keys().map(String::as_str)).map(|name| spelt[name].clone())
    }
}

/// Returns the tool names that a name could denote at this server.
fn possible_tool_names<'n>(server: &str, name: &'n str) -> impl Iterator<Item = &'n str> {
    let after = |start: &str, between: &str| name.strip_prefix(start)?.strip_prefix(server)?.strip_prefix(between);
    let [one, two, three, four, five] = SEPARATORS.map(|separator| after("", separator));
    let before = name.strip_suffix(server).and_then(|rest| rest.strip_suffix('@'));
    [one, two, three, four, five, after("mcp__", "__"), after("mcp_", "_"), before].into_iter().flatten()
}

impl fmt::Display for ToolResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |name: &str| UntrustedText::new(name.to_owned()).truncate(100).to_string();
        match self {
            Self::Unknown { name, nearest: None } => write!(f, "no tool `{}`", shown(name)),
            Self::Unknown { name, nearest: Some(nearest) } => {
                write!(f, "no tool `{}`; did you mean `{}`?", shown(name), shown(nearest))
            }
            Self::Ambiguous { name, candidates } => {
                let all: Vec<String> = candidates.iter().map(ToolId::to_string).collect();
                write!(f, "`{}` is ambiguous, candidates: {}", shown(name), all.join(", "))
            }
        }
    }
}

impl std::error::Error for ToolResolveError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::fixture::section;

    fn catalog(servers: &[(&str, &[&str])]) -> Catalog {
        servers.iter().fold(Catalog::default(), |catalog, (server, tools)| catalog.with(section(server, tools)))
    }

    fn check(catalog: &Catalog, name: &str, expected: &str) {
        let found = catalog.resolve(name).map(|tool| tool.id.to_string()).unwrap_or_else(|error| error.to_string());
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn every_common_spelling_resolves_to_the_tool() {
        let catalog = catalog(&[("git", &["status", "log-all", "a.b", "größe"]), ("git2", &["status"])]);
        for name in ["status", "log-all", "a.b", "größe"] {
            let id = format!("git / {name}");
            for separator in [".", "/", ":", "::", "__"] {
                check(&catalog, &format!("git{separator}{name}"), &id);
            }
            check(&catalog, &format!("mcp__git__{name}"), &id);
            check(&catalog, &format!("mcp_git_{name}"), &id);
            check(&catalog, &format!("{name}@git"), &id);
            let tool = catalog.resolve(&format!("git/{name}")).unwrap();
            check(&catalog, tool.alias(), &id);
            check(&catalog, &tool.description.shown, &id);
        }
    }

    #[test]
    fn ambiguous_names_resolve_to_no_tool() {
        for servers in [[("a", &["b__c"][..]), ("a__b", &["c"])], [("a__b", &["c"]), ("a", &["b__c"])]] {
            let catalog = catalog(&servers);
            check(&catalog, "mcp__a__b__c", "`mcp__a__b__c` is ambiguous, candidates: a / b__c, a__b / c");
            check(&catalog, "a__b__c", "`a__b__c` is ambiguous, candidates: a / b__c, a__b / c");
            check(&catalog, "a/b__c", "a / b__c");
            check(&catalog, "a__b/c", "a__b / c");
        }
        check(&catalog(&[("a", &["b", ":b"])]), "a::b", "`a::b` is ambiguous, candidates: a / b, a / :b");
    }

    #[test]
    fn misspelled_name_gets_a_suggestion() {
        let catalog = catalog(&[("git", &["status", "log"]), ("files", &["read_file"])]);
        for (name, expected) in [
            ("mcp__git__statsu", "no tool `mcp__git__statsu`; did you mean `mcp__git__status`?"),
            ("git.statsu", "no tool `git.statsu`; did you mean `mcp__git__status`?"),
            ("flies:read_file", "no tool `flies:read_file`; did you mean `mcp__files__read_file`?"),
            ("read_file", "no tool `read_file`; did you mean `mcp__files__read_file`?"),
            ("quite/different", "no tool `quite/different`"),
            ("\u{1b}[2J", "no tool `\\u{1b}[2J`"),
            ("", "no tool ``"),
        ] {
            check(&catalog, name, expected);
        }
    }
}
