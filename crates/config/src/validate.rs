//! Validation of an object against a table of known keys.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::RangeInclusive;
use std::time::Duration;

use wharf_spec::UntrustedText;

use crate::fields::{ConfigField, ConfigFieldKind};
use crate::tree::{ConfigMember, ConfigNode, ConfigValue, TextPosition};

/// The known members of an object, each with a value of the right type.
pub(crate) struct ValidatedObject<'a> {
    found: Vec<(&'static ConfigField, &'a ConfigMember)>,
    /// The first member of each known key, including those with an invalid value.
    seen: Vec<(&'static ConfigField, &'a ConfigMember)>,
    /// Members with unknown keys.
    pub unknown: Vec<&'a ConfigMember>,
    /// Problems found.
    pub faults: Vec<ValidationFault>,
}

/// A problem at a position, without the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValidationFault {
    pub code: &'static str,
    pub at: TextPosition,
    pub text: String,
    pub fix: Option<String>,
}

impl ValidationFault {
    pub fn new(code: &'static str, at: TextPosition, text: impl Into<String>) -> Self {
        Self { code, at, text: text.into(), fix: None }
    }

    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// Validates an object against tables of keys. Members of the wrong type are reported and treated as absent.
pub(crate) fn validate_object<'a>(
    members: &'a [ConfigMember],
    tables: &[&'static [ConfigField]],
) -> ValidatedObject<'a> {
    let mut checked = ValidatedObject { found: Vec::new(), seen: Vec::new(), unknown: Vec::new(), faults: Vec::new() };
    let is_known = |key: &str| tables.iter().copied().flatten().any(|field| field.matches_key(key));
    // Keys that start with `_` are comments and may repeat.
    let others = members.iter().filter(|member| !member.key.starts_with('_') && !is_known(&member.key));
    checked.faults.extend(find_duplicates(others, str::to_owned));
    for member in members {
        let field = tables.iter().copied().flatten().find(|field| field.matches_key(&member.key));
        match field {
            None => checked.unknown.push(member),
            Some(field) => checked.accept(field, member),
        }
    }
    checked
}

impl<'a> ValidatedObject<'a> {
    fn accept(&mut self, field: &'static ConfigField, member: &'a ConfigMember) {
        if let Some((_, first)) = self.seen.iter().find(|(other, _)| other.name == field.name) {
            self.faults.push(duplicate_key_fault(member, first));
            return;
        }
        self.seen.push((field, member));
        // Many programs write null for an absent value.
        if member.node.value == ConfigValue::Null {
            return;
        }
        match type_mismatch(field.kind, &member.node) {
            None => {
                self.faults.extend(duplicate_name_faults(field, member));
                self.found.push((field, member));
            }
            Some((at, wanted)) => {
                let text = format!("`{}` must be {wanted}", displayed_key(&member.key));
                self.faults.push(ValidationFault::new("wrong_type", at, text));
            }
        }
    }

    /// Returns the member of a key, in any accepted spelling.
    pub fn member(&self, name: &str) -> Option<&'a ConfigMember> {
        self.found.iter().find(|(field, _)| field.name == name).map(|(_, member)| *member)
    }

    pub fn text(&self, name: &str) -> Option<(&'a str, TextPosition)> {
        let node = &self.member(name)?.node;
        Some((node.text()?, node.at))
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.member(name)?.node.value {
            ConfigValue::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    pub fn count(&self, name: &str) -> Option<u64> {
        parse_integer(&self.member(name)?.node)
    }

    pub fn millis(&self, name: &str) -> Option<Duration> {
        self.count(name).map(Duration::from_millis)
    }

    pub fn list(&self, name: &str) -> &'a [ConfigNode] {
        match self.member(name).map(|member| &member.node.value) {
            Some(ConfigValue::List(items)) => items,
            _ => &[],
        }
    }

    pub fn texts(&self, name: &str) -> Vec<(&'a str, TextPosition)> {
        self.list(name).iter().filter_map(|node| Some((node.text()?, node.at))).collect()
    }

    pub fn map(&self, name: &str) -> &'a [ConfigMember] {
        self.member(name).map(|member| member.node.members()).unwrap_or_default()
    }
}

fn duplicate_key_fault(member: &ConfigMember, first: &ConfigMember) -> ValidationFault {
    let (key, other) = (displayed_key(&member.key), displayed_key(&first.key));
    let text = format!("`{key}` on line {} duplicates `{other}` on line {}", member.at.line, first.at.line);
    ValidationFault::new("duplicate_key", member.at, text).fix("remove one of them")
}

/// Reports duplicate names in a map of user-defined names. Header names are compared case-insensitively.
fn duplicate_name_faults(field: &ConfigField, member: &ConfigMember) -> Vec<ValidationFault> {
    let spelling = if field.name == "headers" { str::to_ascii_lowercase } else { str::to_owned };
    match field.kind {
        ConfigFieldKind::TemplateMap | ConfigFieldKind::MillisMap | ConfigFieldKind::Objects(_) => {
            find_duplicates(member.node.members(), spelling)
        }
        _ => Vec::new(),
    }
}

fn find_duplicates<'a>(
    members: impl IntoIterator<Item = &'a ConfigMember>,
    spelling: fn(&str) -> String,
) -> Vec<ValidationFault> {
    let mut firsts: HashMap<String, &ConfigMember> = HashMap::new();
    let mut faults = Vec::new();
    for member in members {
        match firsts.entry(spelling(&member.key)) {
            Entry::Occupied(first) => faults.push(duplicate_key_fault(member, first.get())),
            Entry::Vacant(free) => drop(free.insert(member)),
        }
    }
    faults
}

/// Returns the value as an integer, if it is one.
pub(crate) fn parse_integer(node: &ConfigNode) -> Option<u64> {
    match &node.value {
        ConfigValue::Number(text) => text.parse().ok(),
        _ => None,
    }
}

/// Returns the position of a type mismatch and a description of the expected type.
fn type_mismatch(kind: ConfigFieldKind, node: &ConfigNode) -> Option<(TextPosition, String)> {
    let wanted =
        |fits: bool, wanted: &str| (!fits).then(|| (node.at, format!("{wanted}, not {}", node.value.type_name())));
    match kind {
        ConfigFieldKind::Text | ConfigFieldKind::Template => wanted(node.text().is_some(), "a string"),
        ConfigFieldKind::Flag => wanted(matches!(node.value, ConfigValue::Bool(_)), "true or false"),
        ConfigFieldKind::Count(least) => integer_mismatch(node, least..=u32::MAX.into()),
        ConfigFieldKind::Millis => integer_mismatch(node, 1..=u32::MAX.into()),
        ConfigFieldKind::Port => integer_mismatch(node, 1..=u16::MAX.into()),
        ConfigFieldKind::Choice(words) => {
            let fits = node.text().is_some_and(|text| words.contains(&text));
            (!fits).then(|| {
                (
                    node.at,
                    format!("one of {}", words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")),
                )
            })
        }
        ConfigFieldKind::Texts | ConfigFieldKind::Templates | ConfigFieldKind::Rules => {
            let ConfigValue::List(items) = &node.value else { return wanted(false, "a list") };
            let odd = items.iter().find(|item| !matches!(kind, ConfigFieldKind::Rules) && item.text().is_none())?;
            Some((odd.at, format!("a list of strings, but it contains {}", odd.value.type_name())))
        }
        ConfigFieldKind::TemplateMap => {
            let ConfigValue::Map(members) = &node.value else { return wanted(false, "an object") };
            let odd = members.iter().find(|member| member.node.text().is_none())?;
            Some((
                odd.node.at,
                format!("an object of strings, but `{}` is {}", displayed_key(&odd.key), odd.node.value.type_name()),
            ))
        }
        ConfigFieldKind::MillisMap => {
            let ConfigValue::Map(members) = &node.value else { return wanted(false, "an object") };
            members
                .iter()
                .find_map(|member| integer_mismatch(&member.node, 1..=u32::MAX.into()))
                .map(|(at, _)| (at, "an object of milliseconds by name".to_owned()))
        }
        ConfigFieldKind::OffOr(_) => {
            wanted(matches!(node.value, ConfigValue::Map(_) | ConfigValue::Bool(_)), "a boolean or an object")
        }
        ConfigFieldKind::Object(_) | ConfigFieldKind::Objects(_) => {
            wanted(matches!(node.value, ConfigValue::Map(_)), "an object")
        }
        ConfigFieldKind::Servers => {
            wanted(matches!(node.value, ConfigValue::Map(_) | ConfigValue::List(_)), "an object of servers by id")
        }
    }
}

fn integer_mismatch(node: &ConfigNode, range: RangeInclusive<u64>) -> Option<(TextPosition, String)> {
    match parse_integer(node) {
        Some(number) if range.contains(&number) => None,
        _ => Some((node.at, format!("a whole number from {} to {}", range.start(), range.end()))),
    }
}

/// Escapes and shortens a key for display.
pub(crate) fn displayed_key(key: &str) -> String {
    UntrustedText::new(key).truncate(80).to_string()
}
