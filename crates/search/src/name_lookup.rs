//! Lookup of tools by name in any spelling.

use std::collections::{BTreeMap, HashMap};

use super::SearchableTool;
use super::words::split_words;

/// Maximum characters of a name that are compared.
const MAX_NAME_CHARS: usize = 256;

/// Name lookup table.
pub(super) struct NameIndex {
    /// All full names of each tool.
    spelt: Vec<Vec<String>>,
    /// Tools by the letters and digits of their names.
    by_letters: HashMap<String, Vec<usize>>,
}

/// Quality of a name match, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameMatch {
    /// Same letters and digits.
    Letters,
    /// Same words.
    Words,
    /// Exact match.
    Verbatim,
}

impl NameIndex {
    pub(super) fn from_tools(tools: &[SearchableTool<'_>]) -> Self {
        let spelt: Vec<Vec<String>> = tools.iter().map(full_names).collect();
        let mut by_letters: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, names) in spelt.iter().enumerate() {
            for name in names {
                let holders = by_letters.entry(letters_and_digits(name)).or_default();
                if holders.last() != Some(&at) {
                    holders.push(at);
                }
            }
        }
        Self { spelt, by_letters }
    }

    /// Returns the tools named by the whole query, or by one of its multi-word parts such as `list_issues`. Each tool
    /// occurs once.
    pub(super) fn find_named(&self, query: &str) -> BTreeMap<usize, NameMatch> {
        let trim = |part: &str| part.trim_matches(|letter: char| !letter.is_alphanumeric()).to_owned();
        let parts = query.split_whitespace().map(trim).filter(|part| split_words(part).len() > 1);
        let mut named = BTreeMap::new();
        for part in std::iter::once(query.trim().to_owned()).chain(parts) {
            for &at in self.by_letters.get(&letters_and_digits(&part)).into_iter().flatten() {
                let how = self.match_quality(at, &part);
                named.entry(at).and_modify(|known: &mut NameMatch| *known = how.max(*known)).or_insert(how);
            }
        }
        named
    }

    fn match_quality(&self, at: usize, part: &str) -> NameMatch {
        let words = split_words(part);
        match &self.spelt[at] {
            names if names.iter().any(|name| name == part) => NameMatch::Verbatim,
            names if names.iter().any(|name| split_words(name) == words) => NameMatch::Words,
            _ => NameMatch::Letters,
        }
    }
}

/// Returns all full names of a tool.
fn full_names(tool: &SearchableTool<'_>) -> Vec<String> {
    let SearchableTool { provider, name, aliases, .. } = tool;
    let cut = |text: &str| text.chars().take(MAX_NAME_CHARS).collect::<String>();
    let (provider, name) = (cut(provider), cut(name));
    let mut spellings = vec![name.clone()];
    spellings.extend(aliases.iter().map(|alias| cut(alias)));
    if !provider.is_empty() {
        let before = [".", "::", "/", ":", "__"].map(|sign| format!("{provider}{sign}{name}"));
        spellings.extend(before);
        spellings.extend([format!("mcp__{provider}__{name}"), format!("{name}@{provider}")]);
    }
    spellings
}

/// Reduces a name to its letters and digits in lower case. A name without any is returned unchanged.
fn letters_and_digits(name: &str) -> String {
    let letters: String = name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    if letters.is_empty() { name.to_owned() } else { letters }
}
