//! Argument patterns of rules. They match decoded values, never JSON text.
//!
//! A key selects a part of the arguments, no key selects all of them. A strict rule (deny, ask) matches if any scalar
//! value in that part matches. An allow rule matches if all of them match.

use std::borrow::Cow;

use wharf_spec::Glob;

use crate::argument::JsonNode;
use crate::fold::{fold, same_key};
use crate::number::spellings;
use crate::problem::RuleProblemKind;

/// Maximum bytes of a pattern. Bounds the cost of matching, which is at most this times the length of a value.
const MAX_PATTERN_BYTES: usize = 1024;

/// A pattern for arguments.
#[derive(Debug, Clone)]
pub(crate) struct ArgumentPattern {
    keyed: Option<KeyedPattern>,
    /// The whole text as a pattern for any value. Applies if there is no key. Strict rules apply it in addition to the
    /// key.
    whole: ValuePattern,
}

#[derive(Debug, Clone)]
struct KeyedPattern {
    path: Vec<String>,
    value: ValuePattern,
}

/// A pattern for one value, and its folded form.
#[derive(Debug, Clone)]
struct ValuePattern {
    glob: Glob,
    folded: Glob,
}

impl ArgumentPattern {
    /// Parses a pattern. The text before the first `=` is a key if it has the form of one.
    pub fn parse(text: &str) -> Result<Self, RuleProblemKind> {
        if text.is_empty() {
            return Err(RuleProblemKind::BadPattern("the pattern is empty"));
        }
        if text.len() > MAX_PATTERN_BYTES {
            return Err(RuleProblemKind::BadPattern("the pattern is too long"));
        }
        let keyed = match parse_key(text) {
            Some((path, _)) if path.iter().any(String::is_empty) => {
                return Err(RuleProblemKind::BadPattern("the pattern has an empty key before `=`"));
            }
            Some((path, value)) => Some(KeyedPattern { path, value: ValuePattern::new(value) }),
            None => None,
        };
        Ok(Self { keyed, whole: ValuePattern::new(text) })
    }

    /// Reports whether any selected value matches, as a strict rule requires.
    pub fn matches_any(&self, arguments: &JsonNode<'_>) -> bool {
        self.any_value_matches(arguments, |pattern, text| pattern.glob.matches(text))
    }

    /// Reports whether any selected value matches if case and width are ignored.
    pub fn nearly_matches_any(&self, arguments: &JsonNode<'_>) -> bool {
        self.any_value_matches(arguments, |pattern, text| pattern.folded.matches(&fold(text)))
    }

    /// Reports whether the selected values exist and all match, as an allow rule requires.
    pub fn matches_all(&self, arguments: &JsonNode<'_>) -> bool {
        let Some(KeyedPattern { path, value }) = &self.keyed else {
            return all_scalars_match(arguments, &|text| self.whole.glob.matches(text));
        };
        let chosen = select_values(arguments, path);
        let is_there = chosen.iter().any(|choice| choice.exact);
        is_there && chosen.iter().all(|choice| all_scalars_match(choice.node, &|text| value.glob.matches(text)))
    }

    /// Returns the number of literal characters.
    pub fn literal_count(&self) -> usize {
        match &self.keyed {
            Some(KeyedPattern { path, value }) => {
                path.iter().map(|key| key.chars().count()).sum::<usize>() + value.glob.literal_count()
            }
            None => self.whole.glob.literal_count(),
        }
    }

    fn any_value_matches(&self, arguments: &JsonNode<'_>, matches: impl Fn(&ValuePattern, &str) -> bool) -> bool {
        let by_key = self.keyed.as_ref().is_some_and(|KeyedPattern { path, value }| {
            select_values(arguments, path)
                .iter()
                .any(|choice| any_scalar_matches(choice.node, &|text| matches(value, text)))
        });
        by_key || any_scalar_matches(arguments, &|text| matches(&self.whole, text))
    }
}

impl ValuePattern {
    fn new(text: &str) -> Self {
        Self { glob: Glob::new(text), folded: Glob::new(&fold(text)) }
    }
}

/// Splits a pattern at the first `=` into the key, split at its dots, and the rest. Returns `None` if the text before
/// it has characters other than letters, digits, `_`, `-`, `$`, `@` and escaped ones.
fn parse_key(text: &str) -> Option<(Vec<String>, &str)> {
    let mut path = vec![String::new()];
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        let part = match character {
            '=' => return Some((path, &text[at + 1..])),
            '.' => {
                path.push(String::new());
                continue;
            }
            '\\' => characters.next()?.1,
            _ if character.is_alphanumeric() || "_-$@".contains(character) => character,
            _ => return None,
        };
        path.last_mut()?.push(part);
    }
    None
}

/// A value selected by a key.
struct SelectedValue<'n, 'a> {
    node: &'n JsonNode<'a>,
    /// Set if every key on the path is spelled exactly as in the pattern.
    exact: bool,
}

/// Returns every value that a server may read under a key. Descends into lists, ignores case and width, and tries `a.b`
/// as a single key as well.
fn select_values<'n, 'a>(node: &'n JsonNode<'a>, path: &[String]) -> Vec<SelectedValue<'n, 'a>> {
    let mut found = Vec::new();
    collect_selected_values(node, path, true, &mut found);
    found
}

fn collect_selected_values<'n, 'a>(
    node: &'n JsonNode<'a>,
    path: &[String],
    exact: bool,
    found: &mut Vec<SelectedValue<'n, 'a>>,
) {
    match node {
        _ if path.is_empty() => found.push(SelectedValue { node, exact }),
        JsonNode::List(items) => items.iter().for_each(|item| collect_selected_values(item, path, exact, found)),
        JsonNode::Object(members) => {
            for taken in 1..=path.len() {
                let key = if taken == 1 { Cow::Borrowed(&*path[0]) } else { Cow::Owned(path[..taken].join(".")) };
                for (name, value) in members.iter().filter(|(name, _)| same_key(name, &key)) {
                    collect_selected_values(value, &path[taken..], exact && *name == key, found);
                }
            }
        }
        JsonNode::Text(_) | JsonNode::Number(_) | JsonNode::Word(_) => {}
    }
}

/// Reports whether any spelling of any scalar value inside matches.
fn any_scalar_matches(node: &JsonNode<'_>, matches: &impl Fn(&str) -> bool) -> bool {
    match node {
        JsonNode::Object(members) if !members.is_empty() => {
            members.iter().any(|(_, value)| any_scalar_matches(value, matches))
        }
        JsonNode::List(items) if !items.is_empty() => items.iter().any(|item| any_scalar_matches(item, matches)),
        JsonNode::Number(text) => spellings(text).iter().any(|text| matches(text)),
        single => matches(scalar_text(single)),
    }
}

/// Reports whether all spellings of all scalar values inside match.
fn all_scalars_match(node: &JsonNode<'_>, matches: &impl Fn(&str) -> bool) -> bool {
    !any_scalar_matches(node, &|text: &str| !matches(text))
}

fn scalar_text<'n>(single: &'n JsonNode<'_>) -> &'n str {
    match single {
        JsonNode::Text(text) => text,
        JsonNode::Number(text) | JsonNode::Word(text) => text,
        JsonNode::Object(_) => "{}",
        JsonNode::List(_) => "[]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the result for a strict rule, for a strict rule that ignores case, and for an allow rule.
    fn check(pattern: &str, arguments: &str, expected: [bool; 3]) {
        let (parsed, node) = (ArgumentPattern::parse(pattern).unwrap(), JsonNode::parse(arguments).unwrap());
        let found = [parsed.matches_any(&node), parsed.nearly_matches_any(&node), parsed.matches_all(&node)];
        assert_eq!(found, expected, "{pattern} on {arguments}");
    }

    #[test]
    fn patterns_match_decoded_values() {
        for (pattern, arguments, expected) in [
            ("path=/etc/*", r#"{"path":"/etc/passwd"}"#, [true, true, true]),
            ("path=/etc/*", r#"{"path":"\u002fetc/passwd"}"#, [true, true, true]),
            ("path=/etc/*", r#"{"path":"/ETC/passwd"}"#, [false, true, false]),
            ("path=/etc/*", r#"{"path":"／etc/passwd"}"#, [false, true, false]),
            ("path=/etc/*", r#"{"Path":"/etc/passwd"}"#, [true, true, false]),
            ("path=/etc/*", r#"{"path":"/etc/a","PATH":"/root"}"#, [true, true, false]),
            ("path=/etc/*", r#"{"other":"/etc/passwd"}"#, [false, false, false]),
            ("path=/etc/*", r#"{"path":["/etc/a","/tmp/b"]}"#, [true, true, false]),
            ("path=/etc/*", r#"{"path":["/etc/a","/etc/b"]}"#, [true, true, true]),
            ("path=/etc/*", r#"{"path":{"to":"/etc/a"}}"#, [true, true, true]),
            ("path=*", r#"{"path":[]}"#, [true, true, true]),
            ("path=*", "{}", [false, false, false]),
            ("a.b=x", r#"{"a":{"b":"x"}}"#, [true, true, true]),
            ("a.b=x", r#"{"a":[{"b":"x"},{"b":"y"}]}"#, [true, true, false]),
            ("a.b=x", r#"{"a.b":"x"}"#, [true, true, true]),
            ("a.b=x", r#"{"a.b":"x","a":{"b":"y"}}"#, [true, true, false]),
            (r"a\.b=x", r#"{"a":{"b":"x"}}"#, [false, false, false]),
            ("n=100", r#"{"n":1e2}"#, [true, true, false]),
            ("n=100", r#"{"n":100}"#, [true, true, true]),
            ("n=1??", r#"{"n":1e9}"#, [true, true, false]),
            ("on=true", r#"{"on":true}"#, [true, true, true]),
            ("/tmp/*", r#"{"a":{"b":["/tmp/x"]}}"#, [true, true, true]),
            ("/tmp/*", r#"{"a":"/tmp/x","b":"/root"}"#, [true, true, false]),
            ("/tmp/*", r#"{"/tmp/x":"y"}"#, [false, false, false]),
            ("*A=b*", r#"{"env":"export A=b c"}"#, [true, true, true]),
            ("A=b", r#"{"env":"A=b"}"#, [true, true, false]),
            (r"A\=b", r#"{"env":"A=b"}"#, [true, true, true]),
            ("*", "{}", [true, true, true]),
        ] {
            check(pattern, arguments, expected);
        }
    }

    #[test]
    fn empty_or_malformed_patterns_are_rejected() {
        for text in ["", "=x", "a..b=x", ".a=x", "a.=x", &"x".repeat(1025)] {
            assert!(ArgumentPattern::parse(text).is_err(), "{text}");
        }
    }
}
