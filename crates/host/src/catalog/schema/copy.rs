//! Copying of a schema: references are inlined and strings are sanitized.

use std::borrow::Cow;
use std::collections::HashSet;
use std::mem::discriminant;

use wharf_spec::UntrustedText;

use crate::catalog::tree::{JsonMembers, JsonTree};
use crate::catalog::{DESCRIPTION, ToolWarning, sanitize};

use super::keyword::{KeywordRole, keyword_role};
use super::measure::ReferenceSizes;

/// Maximum bytes of a schema that is inlined in place of a reference.
const MAX_INLINED_BYTES: usize = 8 * 1024;
/// Maximum bytes that all inlined schemas together may add.
const MAX_TOTAL_INLINED_BYTES: usize = 64 * 1024;
/// The JSON Schema types.
const SCHEMA_TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
/// Maximum characters of a name or reference in a warning.
pub(super) const MAX_REPORTED_CHARS: usize = 100;

/// Copies a schema. Definitions are copied only if a reference to one remains.
pub(super) fn copy_schema_tree<'a>(
    root: &JsonTree<'a>,
    measures: &ReferenceSizes<'_, 'a>,
) -> (JsonMembers<'a>, Vec<ToolWarning>) {
    let mut copier = SchemaCopier { measures, room: MAX_TOTAL_INLINED_BYTES, refers: false, marks: Vec::new() };
    let JsonTree::Object(members) = root else { return (Vec::new(), Vec::new()) };
    let mut copied = copier.copy_members(members, CopyScope::Top);
    if copier.refers {
        copier.room = 0;
        copied.extend(copier.copy_members(members, CopyScope::Definitions));
    }
    (copied, copier.marks)
}

/// The part of an object to copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyScope {
    /// All members except definitions. References are always inlined, because no provider accepts them at the top
    /// level.
    Top,
    /// Definitions only.
    Definitions,
    /// All members.
    Inner,
}

struct SchemaCopier<'m, 't, 'a> {
    measures: &'m ReferenceSizes<'t, 'a>,
    room: usize,
    /// Set if a reference remains in the copy.
    refers: bool,
    marks: Vec<ToolWarning>,
}

impl<'a> SchemaCopier<'_, '_, 'a> {
    fn copy_members(&mut self, members: &JsonMembers<'a>, part: CopyScope) -> JsonMembers<'a> {
        let mut copied = Vec::with_capacity(members.len());
        let mut referred = Vec::new();
        for (key, value) in members {
            match keyword_role(key) {
                role if part != CopyScope::Inner
                    && (role == KeywordRole::Definitions) != (part == CopyScope::Definitions) => {}
                KeywordRole::Bookkeeping => {}
                role if !is_valid_keyword(role, key, value) => {
                    self.add_warning(ToolWarning::KeywordDropped(key.clone().into_owned()))
                }
                KeywordRole::Dynamic => self.record_dropped(value),
                KeywordRole::Reference => referred = self.inline_reference(value, part),
                KeywordRole::Schemas => copied.push((key.clone(), self.copy_schemas(value))),
                KeywordRole::Named | KeywordRole::Definitions => copied.push((key.clone(), self.copy_named(value))),
                KeywordRole::Required => copied.push((key.clone(), self.copy_required(value, members))),
                KeywordRole::Data => copied.push((self.check_name(key), self.copy_data(value))),
            }
        }
        merge_siblings(referred, copied)
    }

    fn copy_schemas(&mut self, value: &JsonTree<'a>) -> JsonTree<'a> {
        match value {
            JsonTree::List(items) => {
                JsonTree::List(items.iter().filter(|item| is_schema(item)).map(|item| self.copy_schema(item)).collect())
            }
            one => self.copy_schema(one),
        }
    }

    fn copy_schema(&mut self, value: &JsonTree<'a>) -> JsonTree<'a> {
        match value {
            JsonTree::Object(members) => JsonTree::Object(self.copy_members(members, CopyScope::Inner)),
            other => self.copy_data(other),
        }
    }

    fn copy_named(&mut self, value: &JsonTree<'a>) -> JsonTree<'a> {
        let JsonTree::Object(members) = value else { return self.copy_data(value) };
        // `dependencies` may contain lists of names.
        let sensible = members.iter().filter(|(_, value)| is_schema(value) || matches!(value, JsonTree::List(_)));
        JsonTree::Object(sensible.map(|(key, value)| (self.check_name(key), self.copy_schema(value))).collect())
    }

    /// Returns the members that replace a reference.
    fn inline_reference(&mut self, value: &JsonTree<'a>, part: CopyScope) -> JsonMembers<'a> {
        let reference = value.text().unwrap_or_default();
        let itself = part == CopyScope::Top && reference == "#";
        let Some((target, measure)) = self.measures.target(reference).filter(|_| !itself) else {
            self.record_dropped(value);
            return Vec::new();
        };
        // `true` allows everything, like an empty schema, and `false` is useless to a model.
        let JsonTree::Object(members) = target else { return Vec::new() };
        match measure.map(|measure| measure.bytes) {
            Some(bytes) if bytes <= MAX_INLINED_BYTES.min(self.room) => self.room -= bytes,
            _ if part == CopyScope::Top => {}
            _ => {
                self.refers = true;
                return vec![(Cow::Borrowed("$ref"), value.clone())];
            }
        }
        self.copy_members(members, CopyScope::Inner)
    }

    fn record_dropped(&mut self, reference: &JsonTree<'a>) {
        let reference =
            UntrustedText::new(reference.text().unwrap_or_default()).truncate(MAX_REPORTED_CHARS).to_string();
        self.add_warning(ToolWarning::ReferenceDropped(reference));
    }

    /// Argument names are kept unchanged, otherwise the argument could not be passed.
    fn copy_required(&mut self, value: &JsonTree<'a>, members: &JsonMembers<'a>) -> JsonTree<'a> {
        let JsonTree::List(names) = value else { return self.copy_data(value) };
        let arguments: HashSet<&str> = match members.iter().find(|(key, _)| key == "properties") {
            Some((_, JsonTree::Object(properties))) => properties.iter().map(|(name, _)| &**name).collect(),
            _ => HashSet::new(),
        };
        let copied = names.iter().map(|name| match name {
            JsonTree::Text(text) if arguments.contains(&**text) => name.clone(),
            other => self.copy_data(other),
        });
        JsonTree::List(copied.collect())
    }

    fn copy_data(&mut self, value: &JsonTree<'a>) -> JsonTree<'a> {
        match value {
            JsonTree::Scalar(text) => JsonTree::Scalar(text),
            JsonTree::Text(text) => JsonTree::Text(self.copy_text(text)),
            JsonTree::List(items) => JsonTree::List(items.iter().map(|item| self.copy_data(item)).collect()),
            JsonTree::Object(members) => {
                JsonTree::Object(members.iter().filter_map(|member| self.copy_member(member)).collect())
            }
        }
    }

    /// Drops an external `$ref` in data, because a careless consumer might follow it.
    fn copy_member(&mut self, (key, value): &(Cow<'a, str>, JsonTree<'a>)) -> Option<(Cow<'a, str>, JsonTree<'a>)> {
        if key == "$ref" && value.text().is_some_and(|reference| !reference.starts_with('#')) {
            self.record_dropped(value);
            return None;
        }
        Some((self.check_name(key), self.copy_data(value)))
    }

    fn check_name(&mut self, name: &Cow<'a, str>) -> Cow<'a, str> {
        if sanitize(name, DESCRIPTION).revealed {
            self.add_warning(ToolWarning::OddArgument(
                UntrustedText::new(&**name).truncate(MAX_REPORTED_CHARS).to_string(),
            ));
        }
        name.clone()
    }

    fn copy_text(&mut self, text: &Cow<'a, str>) -> Cow<'a, str> {
        let found = sanitize(text, DESCRIPTION);
        if !found.revealed && !found.cut {
            return text.clone();
        }
        if found.revealed {
            self.add_warning(ToolWarning::Neutralised);
        }
        if found.cut {
            self.add_warning(ToolWarning::Shortened);
        }
        Cow::Owned(found.text.into_owned())
    }

    /// Records the first warning of each kind: there may be thousands.
    fn add_warning(&mut self, mark: ToolWarning) {
        if !self.marks.iter().any(|told| discriminant(told) == discriminant(&mark)) {
            self.marks.push(mark);
        }
    }
}

/// Reports whether a keyword has a valid value. Providers reject a whole request with an invalid one.
fn is_valid_keyword(role: KeywordRole, keyword: &str, value: &JsonTree<'_>) -> bool {
    match role {
        KeywordRole::Schemas => is_schema(value) || matches!(value, JsonTree::List(_)),
        KeywordRole::Named | KeywordRole::Definitions => matches!(value, JsonTree::Object(_)),
        KeywordRole::Required => matches!(value, JsonTree::List(_)),
        KeywordRole::Data if keyword == "type" => match value {
            JsonTree::List(names) => !names.is_empty() && names.iter().all(is_type),
            name => is_type(name),
        },
        KeywordRole::Data if keyword == "enum" => matches!(value, JsonTree::List(_)),
        KeywordRole::Data if matches!(keyword, "title" | "description") => matches!(value, JsonTree::Text(_)),
        KeywordRole::Data | KeywordRole::Reference | KeywordRole::Dynamic | KeywordRole::Bookkeeping => true,
    }
}

fn is_type(name: &JsonTree<'_>) -> bool {
    name.text().is_some_and(|name| SCHEMA_TYPES.contains(&name))
}

fn is_schema(value: &JsonTree<'_>) -> bool {
    matches!(value, JsonTree::Object(_) | JsonTree::Scalar("true" | "false"))
}

/// Merges inlined members with their siblings, which take precedence.
fn merge_siblings<'a>(referred: JsonMembers<'a>, beside: JsonMembers<'a>) -> JsonMembers<'a> {
    if referred.is_empty() {
        return beside;
    }
    let said: HashSet<Cow<'a, str>> = beside.iter().map(|(key, _)| key.clone()).collect();
    referred.into_iter().filter(|(key, _)| !said.contains(key)).chain(beside).collect()
}
