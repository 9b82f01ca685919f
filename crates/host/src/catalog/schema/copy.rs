//! Copying of a schema: references are inlined and strings are sanitized.

use std::borrow::Cow;
use std::collections::HashSet;
use std::mem::discriminant;

use wharf_spec::Untrusted;

use crate::catalog::tree::{Members, Tree};
use crate::catalog::{DESCRIPTION, ToolWarning, neutral};

use super::keyword::{Role, role};
use super::measure::ReferenceSizes;

/// Maximum bytes of a schema that is inlined in place of a reference.
const LARGEST_TARGET: usize = 8 * 1024;
/// Maximum bytes that all inlined schemas together may add.
const ROOM: usize = 64 * 1024;
/// The JSON Schema types.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
/// Maximum characters of a name or reference in a warning.
pub(super) const TOLD: usize = 100;

/// Copies a schema. Definitions are copied only if a reference to one remains.
pub(super) fn copy<'a>(root: &Tree<'a>, measures: &ReferenceSizes<'_, 'a>) -> (Members<'a>, Vec<ToolWarning>) {
    let mut copier = SchemaCopier { measures, room: ROOM, refers: false, marks: Vec::new() };
    let Tree::Object(members) = root else { return (Vec::new(), Vec::new()) };
    let mut copied = copier.members(members, CopyScope::Top);
    if copier.refers {
        copier.room = 0;
        copied.extend(copier.members(members, CopyScope::Definitions));
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
    fn members(&mut self, members: &Members<'a>, part: CopyScope) -> Members<'a> {
        let mut copied = Vec::with_capacity(members.len());
        let mut referred = Vec::new();
        for (key, value) in members {
            match role(key) {
                role if part != CopyScope::Inner && (role == Role::Definitions) != (part == CopyScope::Definitions) => {
                }
                Role::Bookkeeping => {}
                role if !makes_sense(role, key, value) => {
                    self.mark(ToolWarning::KeywordDropped(key.clone().into_owned()))
                }
                Role::Dynamic => self.dropped(value),
                Role::Reference => referred = self.reference(value, part),
                Role::Schemas => copied.push((key.clone(), self.schemas(value))),
                Role::Named | Role::Definitions => copied.push((key.clone(), self.named(value))),
                Role::Required => copied.push((key.clone(), self.required(value, members))),
                Role::Data => copied.push((self.name(key), self.data(value))),
            }
        }
        beside(referred, copied)
    }

    fn schemas(&mut self, value: &Tree<'a>) -> Tree<'a> {
        match value {
            Tree::List(items) => {
                Tree::List(items.iter().filter(|item| is_schema(item)).map(|item| self.schema(item)).collect())
            }
            one => self.schema(one),
        }
    }

    fn schema(&mut self, value: &Tree<'a>) -> Tree<'a> {
        match value {
            Tree::Object(members) => Tree::Object(self.members(members, CopyScope::Inner)),
            other => self.data(other),
        }
    }

    fn named(&mut self, value: &Tree<'a>) -> Tree<'a> {
        let Tree::Object(members) = value else { return self.data(value) };
        // `dependencies` may contain lists of names.
        let sensible = members.iter().filter(|(_, value)| is_schema(value) || matches!(value, Tree::List(_)));
        Tree::Object(sensible.map(|(key, value)| (self.name(key), self.schema(value))).collect())
    }

    /// Returns the members that replace a reference.
    fn reference(&mut self, value: &Tree<'a>, part: CopyScope) -> Members<'a> {
        let reference = value.text().unwrap_or_default();
        let itself = part == CopyScope::Top && reference == "#";
        let Some((target, measure)) = self.measures.target(reference).filter(|_| !itself) else {
            self.dropped(value);
            return Vec::new();
        };
        // `true` allows everything, like an empty schema, and `false` is useless to a model.
        let Tree::Object(members) = target else { return Vec::new() };
        match measure.map(|measure| measure.bytes) {
            Some(bytes) if bytes <= LARGEST_TARGET.min(self.room) => self.room -= bytes,
            _ if part == CopyScope::Top => {}
            _ => {
                self.refers = true;
                return vec![(Cow::Borrowed("$ref"), value.clone())];
            }
        }
        self.members(members, CopyScope::Inner)
    }

    fn dropped(&mut self, reference: &Tree<'a>) {
        let reference = Untrusted::new(reference.text().unwrap_or_default()).shortened(TOLD).to_string();
        self.mark(ToolWarning::ReferenceDropped(reference));
    }

    /// Argument names are kept unchanged, otherwise the argument could not be passed.
    fn required(&mut self, value: &Tree<'a>, members: &Members<'a>) -> Tree<'a> {
        let Tree::List(names) = value else { return self.data(value) };
        let arguments: HashSet<&str> = match members.iter().find(|(key, _)| key == "properties") {
            Some((_, Tree::Object(properties))) => properties.iter().map(|(name, _)| &**name).collect(),
            _ => HashSet::new(),
        };
        let copied = names.iter().map(|name| match name {
            Tree::Text(text) if arguments.contains(&**text) => name.clone(),
            other => self.data(other),
        });
        Tree::List(copied.collect())
    }

    fn data(&mut self, value: &Tree<'a>) -> Tree<'a> {
        match value {
            Tree::Scalar(text) => Tree::Scalar(text),
            Tree::Text(text) => Tree::Text(self.text(text)),
            Tree::List(items) => Tree::List(items.iter().map(|item| self.data(item)).collect()),
            Tree::Object(members) => Tree::Object(members.iter().filter_map(|member| self.datum(member)).collect()),
        }
    }

    /// Drops an external `$ref` in data, because a careless consumer might follow it.
    fn datum(&mut self, (key, value): &(Cow<'a, str>, Tree<'a>)) -> Option<(Cow<'a, str>, Tree<'a>)> {
        if key == "$ref" && value.text().is_some_and(|reference| !reference.starts_with('#')) {
            self.dropped(value);
            return None;
        }
        Some((self.name(key), self.data(value)))
    }

    fn name(&mut self, name: &Cow<'a, str>) -> Cow<'a, str> {
        if neutral(name, DESCRIPTION).revealed {
            self.mark(ToolWarning::OddArgument(Untrusted::new(&**name).shortened(TOLD).to_string()));
        }
        name.clone()
    }

    fn text(&mut self, text: &Cow<'a, str>) -> Cow<'a, str> {
        let found = neutral(text, DESCRIPTION);
        if !found.revealed && !found.cut {
            return text.clone();
        }
        if found.revealed {
            self.mark(ToolWarning::Neutralised);
        }
        if found.cut {
            self.mark(ToolWarning::Shortened);
        }
        Cow::Owned(found.text.into_owned())
    }

    /// Records the first warning of each kind: there may be thousands.
    fn mark(&mut self, mark: ToolWarning) {
        if !self.marks.iter().any(|told| discriminant(told) == discriminant(&mark)) {
            self.marks.push(mark);
        }
    }
}

/// Reports whether a keyword has a valid value. Providers reject a whole request with an invalid one.
fn makes_sense(role: Role, keyword: &str, value: &Tree<'_>) -> bool {
    match role {
        Role::Schemas => is_schema(value) || matches!(value, Tree::List(_)),
        Role::Named | Role::Definitions => matches!(value, Tree::Object(_)),
        Role::Required => matches!(value, Tree::List(_)),
        Role::Data if keyword == "type" => match value {
            Tree::List(names) => !names.is_empty() && names.iter().all(is_type),
            name => is_type(name),
        },
        Role::Data if keyword == "enum" => matches!(value, Tree::List(_)),
        Role::Data if matches!(keyword, "title" | "description") => matches!(value, Tree::Text(_)),
        Role::Data | Role::Reference | Role::Dynamic | Role::Bookkeeping => true,
    }
}

fn is_type(name: &Tree<'_>) -> bool {
    name.text().is_some_and(|name| TYPES.contains(&name))
}

fn is_schema(value: &Tree<'_>) -> bool {
    matches!(value, Tree::Object(_) | Tree::Scalar("true" | "false"))
}

/// Merges inlined members with their siblings, which take precedence.
fn beside<'a>(referred: Members<'a>, beside: Members<'a>) -> Members<'a> {
    if referred.is_empty() {
        return beside;
    }
    let said: HashSet<Cow<'a, str>> = beside.iter().map(|(key, _)| key.clone()).collect();
    referred.into_iter().filter(|(key, _)| !said.contains(key)).chain(beside).collect()
}
