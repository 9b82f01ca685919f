//! Differences between two tool definitions, formatted for the user.

use std::borrow::Cow;
use std::fmt;

use wharf_spec::UntrustedText;

use crate::argument::JsonNode;

/// Maximum number of reported changes.
const MAX_CHANGES: usize = 40;
/// Maximum characters of a displayed value.
const MAX_VALUE_CHARS: usize = 400;
/// Number of characters to display before the first difference of two values.
const CONTEXT_CHARS: usize = 24;
/// Maximum characters of a displayed key.
const MAX_KEY_CHARS: usize = 60;
/// Maximum characters of a displayed path.
const MAX_PATH_CHARS: usize = 300;

/// The difference between two definitions. All text is escaped and shortened for display.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefinitionDiff {
    /// Changes, sorted by path.
    pub changes: Vec<DefinitionChange>,
    /// Number of further changes that are not listed.
    pub omitted: usize,
}

/// A changed member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionChange {
    /// Path of the member, such as `inputSchema.properties.path`. Empty for the definition itself.
    pub path: String,
    /// Kind of change.
    pub kind: DefinitionChangeKind,
}

/// Kind of change of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefinitionChangeKind {
    /// The member is new. Holds its value.
    Added(String),
    /// The member was removed. Holds its old value.
    Removed(String),
    /// The member has another value. Long texts are shortened to the part that differs.
    Changed {
        /// Old value.
        before: String,
        /// New value.
        after: String,
    },
}

/// Compares two definitions. Ignores the order of members and the escaping of strings. A definition that is not valid
/// JSON is compared as text.
pub fn diff_definitions(before: &str, after: &str) -> DefinitionDiff {
    let mut difference = DefinitionDiff::default();
    match (JsonNode::parse(before), JsonNode::parse(after)) {
        (Some(before), Some(after)) => difference.compare("", &before, &after),
        _ if before != after => difference.push_change("", before, after),
        _ => {}
    }
    difference
}

impl DefinitionDiff {
    fn compare(&mut self, path: &str, before: &JsonNode<'_>, after: &JsonNode<'_>) {
        match (before, after) {
            (JsonNode::Object(old), JsonNode::Object(new)) => {
                self.compare_members(path, &members_by_key(old), &members_by_key(new))
            }
            (JsonNode::List(old), JsonNode::List(new)) => {
                self.compare_members(path, &items_by_index(old), &items_by_index(new))
            }
            _ => {
                let (before, after) = (before.to_canonical_json(), after.to_canonical_json());
                if before != after {
                    self.push_change(path, &before, &after);
                }
            }
        }
    }

    /// Compares members. Both lists must be sorted by key.
    fn compare_members(&mut self, path: &str, old: &[DiffMember<'_>], new: &[DiffMember<'_>]) {
        let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (Some(before), Some(after)) => before.key.cmp(&after.key),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => return,
            };
            let (before, after) =
                (if order.is_le() { old.next() } else { None }, if order.is_ge() { new.next() } else { None });
            match (before, after) {
                (Some(before), Some(after)) => self.compare(&before.path_under(path), before.value, after.value),
                (Some(gone), None) => self.push(
                    gone.path_under(path),
                    DefinitionChangeKind::Removed(format_value(&gone.value.to_canonical_json())),
                ),
                (None, Some(come)) => self.push(
                    come.path_under(path),
                    DefinitionChangeKind::Added(format_value(&come.value.to_canonical_json())),
                ),
                (None, None) => return,
            }
        }
    }

    fn push_change(&mut self, path: &str, before: &str, after: &str) {
        let (before, after) = excerpts_at_difference(before, after);
        self.push(path.to_owned(), DefinitionChangeKind::Changed { before, after });
    }

    fn push(&mut self, path: String, kind: DefinitionChangeKind) {
        if self.changes.len() < MAX_CHANGES {
            self.changes.push(DefinitionChange { path, kind });
        } else {
            self.omitted += 1;
        }
    }
}

/// A member of an object, or an item of a list with its index.
struct DiffMember<'n> {
    key: DiffKey<'n>,
    value: &'n JsonNode<'n>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum DiffKey<'n> {
    Name(&'n str),
    Place(usize),
}

impl DiffMember<'_> {
    fn path_under(&self, path: &str) -> String {
        let dot = if path.is_empty() { "" } else { "." };
        let longer = match self.key {
            DiffKey::Name(name) => format!("{path}{dot}{}", UntrustedText::new(name).truncate(MAX_KEY_CHARS)),
            DiffKey::Place(place) => format!("{path}[{place}]"),
        };
        // Cut the front: the end distinguishes deeply nested members.
        match longer.char_indices().rev().nth(MAX_PATH_CHARS) {
            Some((at, _)) => format!("…{}", &longer[at..]),
            None => longer,
        }
    }
}

fn members_by_key<'n>(members: &'n [(Cow<'n, str>, JsonNode<'n>)]) -> Vec<DiffMember<'n>> {
    let mut list: Vec<_> = members.iter().map(|(key, value)| DiffMember { key: DiffKey::Name(key), value }).collect();
    list.sort_by(|one, other| one.key.cmp(&other.key));
    list
}

fn items_by_index<'n>(items: &'n [JsonNode<'n>]) -> Vec<DiffMember<'n>> {
    items.iter().enumerate().map(|(place, value)| DiffMember { key: DiffKey::Place(place), value }).collect()
}

/// Returns both values, starting shortly before their first difference.
fn excerpts_at_difference(before: &str, after: &str) -> (String, String) {
    let alike = before.chars().zip(after.chars()).take_while(|(one, other)| one == other).count();
    let start = alike.saturating_sub(CONTEXT_CHARS);
    let [before, after] = [before, after].map(|text| text.chars().skip(start).collect::<String>());
    let mark = if start > 0 { "…" } else { "" };
    (format!("{mark}{}", format_value(&before)), format!("{mark}{}", format_value(&after)))
}

/// Formats a value for display and appends the number of omitted characters.
fn format_value(text: &str) -> String {
    let hidden = text.chars().count().saturating_sub(MAX_VALUE_CHARS);
    let start = UntrustedText::new(text).truncate(MAX_VALUE_CHARS).to_string();
    if hidden == 0 { start } else { format!("{start} ({hidden} more characters)") }
}

/// Displays one line per change, or one line for an empty difference.
impl fmt::Display for DefinitionDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.changes.is_empty() {
            return f.write_str("no changes except in formatting");
        }
        for (n, change) in self.changes.iter().enumerate() {
            let line = if n == 0 { "" } else { "\n" };
            write!(f, "{line}{change}")?;
        }
        match self.omitted {
            0 => Ok(()),
            count => write!(f, "\nand {count} more changes"),
        }
    }
}

impl fmt::Display for DefinitionChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "(definition)" } else { &self.path };
        match &self.kind {
            DefinitionChangeKind::Added(value) => write!(f, "+ {path}: {value}"),
            DefinitionChangeKind::Removed(value) => write!(f, "- {path}: {value}"),
            DefinitionChangeKind::Changed { before, after } => write!(f, "~ {path}: {before} → {after}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_reported_by_path() {
        for (before, after, expected) in [
            (r#"{"a":1,"b":2}"#, r#"{"b":2, "\u0061":1}"#, "no changes except in formatting"),
            (r#"{"a":1}"#, r#"{"a":2}"#, "~ a: 1 → 2"),
            (r#"{"a":{"b":1}}"#, r#"{"a":{"c":[1]}}"#, "- a.b: 1\n+ a.c: [1]"),
            (r#"{"a":[1,2]}"#, r#"{"a":[1,3,4]}"#, "~ a[1]: 2 → 3\n+ a[2]: 4"),
            (r#"{"a":1}"#, r#"{"a":{"b":1}}"#, r#"~ a: 1 → {"b":1}"#),
            (r#"{"a":"x"}"#, "{\"a\":\"\\u001b[2J\u{202e}\"}", "~ a: \"x\" → \"\\u001b[2J\\u{202e}\""),
            (r#"{"a":1}"#, "{\"a\\n~ b\":1}", "- a: 1\n+ a\\n~ b: 1"),
            ("", r#"{"a":1}"#, r#"~ (definition):  → {"a":1}"#),
            (r#"{"a":1}"#, r#"{"a":1,"a":1}"#, r#"~ (definition): {"a":1} → {"a":1,"a":1}"#),
        ] {
            assert_eq!(diff_definitions(before, after).to_string(), expected, "{before} {after}");
        }
    }

    #[test]
    fn diff_is_truncated_around_the_difference() {
        let text = |end: &str| format!(r#"{{"description":"{}{end}"}}"#, "x".repeat(5000));
        let told = diff_definitions(&text("good"), &text(&"evil ".repeat(1000))).to_string();
        assert!(told.contains("xgood\" → …x") && told.contains("evil") && told.contains("more characters)"), "{told}");
        assert!(told.len() < 1000);

        let many = (0..100).map(|n| format!("\"{n}{}\":1", "k".repeat(1000))).collect::<Vec<_>>().join(",");
        let found = diff_definitions("{}", &format!("{{{many}}}"));
        assert_eq!((found.changes.len(), found.omitted), (MAX_CHANGES, 60));
        assert!(found.changes.iter().all(|change| change.path.chars().count() <= MAX_KEY_CHARS + 1));

        let deep = |value: u8| format!("{}{value}{}", r#"{"some long key":"#.repeat(31), "}".repeat(31));
        let found = diff_definitions(&deep(1), &deep(2));
        assert!(found.changes[0].path.chars().count() <= MAX_PATH_CHARS + 2, "{found}");
    }
}
