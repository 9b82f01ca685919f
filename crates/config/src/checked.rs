//! Validation of an object against a table of known keys.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::RangeInclusive;
use std::time::Duration;

use wharf_spec::Untrusted;

use crate::fields::{Field, Kind};
use crate::tree::{Member, Node, TextPosition, Value};

/// The known members of an object, each with a value of the right type.
pub(crate) struct Checked<'a> {
    found: Vec<(&'static Field, &'a Member)>,
    /// The first member of each known key, including those with an invalid value.
    seen: Vec<(&'static Field, &'a Member)>,
    /// Members with unknown keys.
    pub unknown: Vec<&'a Member>,
    /// Problems found.
    pub faults: Vec<Fault>,
}

/// A problem at a position, without the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub code: &'static str,
    pub at: TextPosition,
    pub text: String,
    pub fix: Option<String>,
}

impl Fault {
    pub fn new(code: &'static str, at: TextPosition, text: impl Into<String>) -> Self {
        Self { code, at, text: text.into(), fix: None }
    }

    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// Validates an object against tables of keys. Members of the wrong type are reported and treated as absent.
pub(crate) fn check<'a>(members: &'a [Member], tables: &[&'static [Field]]) -> Checked<'a> {
    let mut checked = Checked { found: Vec::new(), seen: Vec::new(), unknown: Vec::new(), faults: Vec::new() };
    let is_known = |key: &str| tables.iter().copied().flatten().any(|field| field.is_called(key));
    // Keys that start with `_` are comments and may repeat.
    let others = members.iter().filter(|member| !member.key.starts_with('_') && !is_known(&member.key));
    checked.faults.extend(duplicates(others, str::to_owned));
    for member in members {
        let field = tables.iter().copied().flatten().find(|field| field.is_called(&member.key));
        match field {
            None => checked.unknown.push(member),
            Some(field) => checked.take(field, member),
        }
    }
    checked
}

impl<'a> Checked<'a> {
    fn take(&mut self, field: &'static Field, member: &'a Member) {
        if let Some((_, first)) = self.seen.iter().find(|(other, _)| other.name == field.name) {
            self.faults.push(twice(member, first));
            return;
        }
        self.seen.push((field, member));
        // Many programs write null for an absent value.
        if member.node.value == Value::Null {
            return;
        }
        match misfit(field.kind, &member.node) {
            None => {
                self.faults.extend(repeated(field, member));
                self.found.push((field, member));
            }
            Some((at, wanted)) => {
                let text = format!("`{}` is not {wanted}", shown(&member.key));
                self.faults.push(Fault::new("wrong_type", at, text));
            }
        }
    }

    /// Returns the member of a key, in any accepted spelling.
    pub fn member(&self, name: &str) -> Option<&'a Member> {
        self.found.iter().find(|(field, _)| field.name == name).map(|(_, member)| *member)
    }

    pub fn text(&self, name: &str) -> Option<(&'a str, TextPosition)> {
        let node = &self.member(name)?.node;
        Some((node.text()?, node.at))
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.member(name)?.node.value {
            Value::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    pub fn count(&self, name: &str) -> Option<u64> {
        number(&self.member(name)?.node)
    }

    pub fn millis(&self, name: &str) -> Option<Duration> {
        self.count(name).map(Duration::from_millis)
    }

    pub fn list(&self, name: &str) -> &'a [Node] {
        match self.member(name).map(|member| &member.node.value) {
            Some(Value::List(items)) => items,
            _ => &[],
        }
    }

    pub fn texts(&self, name: &str) -> Vec<(&'a str, TextPosition)> {
        self.list(name).iter().filter_map(|node| Some((node.text()?, node.at))).collect()
    }

    pub fn map(&self, name: &str) -> &'a [Member] {
        self.member(name).map(|member| member.node.members()).unwrap_or_default()
    }
}

fn twice(member: &Member, first: &Member) -> Fault {
    let (key, other) = (shown(&member.key), shown(&first.key));
    let text = format!("`{key}` on line {} is there already as `{other}` on line {}", member.at.line, first.at.line);
    Fault::new("duplicate_key", member.at, text).fix("keep one of them")
}

/// Reports duplicate names in a map of user-defined names. Header names are compared case-insensitively.
fn repeated(field: &Field, member: &Member) -> Vec<Fault> {
    let spelling = if field.name == "headers" { str::to_ascii_lowercase } else { str::to_owned };
    match field.kind {
        Kind::TemplateMap | Kind::MillisMap | Kind::Objects(_) => duplicates(member.node.members(), spelling),
        _ => Vec::new(),
    }
}

fn duplicates<'a>(members: impl IntoIterator<Item = &'a Member>, spelling: fn(&str) -> String) -> Vec<Fault> {
    let mut firsts: HashMap<String, &Member> = HashMap::new();
    let mut faults = Vec::new();
    for member in members {
        match firsts.entry(spelling(&member.key)) {
            Entry::Occupied(first) => faults.push(twice(member, first.get())),
            Entry::Vacant(free) => drop(free.insert(member)),
        }
    }
    faults
}

/// Returns the value as an integer, if it is one.
pub(crate) fn number(node: &Node) -> Option<u64> {
    match &node.value {
        Value::Number(text) => text.parse().ok(),
        _ => None,
    }
}

/// Returns the position of a type mismatch and a description of the expected type.
fn misfit(kind: Kind, node: &Node) -> Option<(TextPosition, String)> {
    let wanted = |fits: bool, wanted: &str| (!fits).then(|| (node.at, format!("{wanted}, but {}", node.value.kind())));
    match kind {
        Kind::Text | Kind::Template => wanted(node.text().is_some(), "a text"),
        Kind::Flag => wanted(matches!(node.value, Value::Bool(_)), "true or false"),
        Kind::Count(least) => whole(node, least..=u32::MAX.into()),
        Kind::Millis => whole(node, 1..=u32::MAX.into()),
        Kind::Port => whole(node, 1..=u16::MAX.into()),
        Kind::Choice(words) => {
            let fits = node.text().is_some_and(|text| words.contains(&text));
            (!fits).then(|| {
                (
                    node.at,
                    format!("one of {}", words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")),
                )
            })
        }
        Kind::Texts | Kind::Templates | Kind::Rules => {
            let Value::List(items) = &node.value else { return wanted(false, "a list") };
            let odd = items.iter().find(|item| !matches!(kind, Kind::Rules) && item.text().is_none())?;
            Some((odd.at, format!("a list of texts: there is {} in it", odd.value.kind())))
        }
        Kind::TemplateMap => {
            let Value::Map(members) = &node.value else { return wanted(false, "an object") };
            let odd = members.iter().find(|member| member.node.text().is_none())?;
            Some((odd.node.at, format!("an object of texts: `{}` is {}", shown(&odd.key), odd.node.value.kind())))
        }
        Kind::MillisMap => {
            let Value::Map(members) = &node.value else { return wanted(false, "an object") };
            members
                .iter()
                .find_map(|member| whole(&member.node, 1..=u32::MAX.into()))
                .map(|(at, _)| (at, "milliseconds by name".to_owned()))
        }
        Kind::OffOr(_) => wanted(matches!(node.value, Value::Map(_) | Value::Bool(_)), "false or an object"),
        Kind::Object(_) | Kind::Objects(_) => wanted(matches!(node.value, Value::Map(_)), "an object"),
        Kind::Servers => {
            wanted(matches!(node.value, Value::Map(_) | Value::List(_)), "an object of servers by their ids")
        }
    }
}

fn whole(node: &Node, range: RangeInclusive<u64>) -> Option<(TextPosition, String)> {
    match number(node) {
        Some(number) if range.contains(&number) => None,
        _ => Some((node.at, format!("a whole number from {} to {}", range.start(), range.end()))),
    }
}

/// Escapes and shortens a key for display.
pub(crate) fn shown(key: &str) -> String {
    Untrusted::new(key).shortened(80).to_string()
}
