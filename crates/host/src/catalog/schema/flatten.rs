//! Flattening of top-level alternatives and conditions, which providers reject, into one object.
//!
//! The result accepts a superset of the original: the arguments of all alternatives, of which only those are required
//! that every alternative requires.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::catalog::tree::{JsonMembers, JsonTree};

use super::may_be_object;

/// Maximum number of alternative schemas of one argument. Beyond it any value is allowed.
const MAX_ALTERNATIVES: usize = 32;

/// Keywords that providers reject at the top level.
const REJECTED_KEYWORDS: [&str; 9] = ["allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else"];

/// Reports whether no flattening is needed.
pub(super) fn is_flat(members: &JsonMembers<'_>) -> bool {
    !members.iter().any(|(key, _)| REJECTED_KEYWORDS.contains(&&**key))
}

/// Flattens the members into one object.
pub(super) fn flatten(members: JsonMembers<'_>) -> JsonMembers<'_> {
    let FlatSchema { mut rest, arguments, required, .. } = FlatSchema::from_members(members);
    rest.push((Cow::Borrowed("properties"), JsonTree::Object(arguments)));
    if !required.is_empty() {
        rest.push((Cow::Borrowed("required"), JsonTree::List(required)));
    }
    rest
}

#[derive(Default)]
struct FlatSchema<'a> {
    rest: JsonMembers<'a>,
    arguments: JsonMembers<'a>,
    required: Vec<JsonTree<'a>>,
    /// Names of all arguments and of the required ones.
    known: HashSet<Cow<'a, str>>,
    needed: HashSet<Cow<'a, str>>,
}

impl<'a> FlatSchema<'a> {
    fn from_members(members: JsonMembers<'a>) -> Self {
        let mut plain = Self::default();
        let mut every = Vec::new();
        let mut choices = Vec::new();
        let mut condition = [None, None];
        for (key, value) in members {
            match (&*key, value) {
                ("properties", JsonTree::Object(arguments)) => plain.add_arguments(arguments),
                ("required", JsonTree::List(names)) => names.into_iter().for_each(|name| plain.require(name)),
                ("allOf", JsonTree::List(branches)) => every = branches,
                ("anyOf" | "oneOf", JsonTree::List(branches)) => choices.push(branches),
                ("then", branch) => condition[0] = Some(branch),
                ("else", branch) => condition[1] = Some(branch),
                (refused, _) if REJECTED_KEYWORDS.contains(&refused) => {}
                (_, value) => plain.rest.push((key, value)),
            }
        }
        if condition.iter().any(Option::is_some) {
            choices.push(condition.map(|branch| branch.unwrap_or(JsonTree::Object(Vec::new()))).into());
        }
        every.into_iter().for_each(|branch| plain.merge_branches(vec![branch]));
        choices.into_iter().for_each(|branches| plain.merge_branches(branches));
        plain
    }

    /// Merges several branches of which one applies. A single branch applies unconditionally.
    fn merge_branches(&mut self, branches: Vec<JsonTree<'a>>) {
        let objects = branches.into_iter().filter_map(|branch| match branch {
            JsonTree::Object(_) if !may_be_object(&branch) => None,
            JsonTree::Object(members) => Some(Self::from_members(members)),
            // Allows everything and requires nothing.
            JsonTree::Scalar("true") => Some(Self::default()),
            _ => None,
        });
        let mut branches: Vec<Self> = objects.collect();
        let Some(first) = branches.first_mut() else { return };
        let required = std::mem::take(&mut first.required);
        let by_all = |name: &&JsonTree<'a>| branches.iter().all(|branch| branch.requires(name));
        required.iter().filter(by_all).cloned().for_each(|name| self.require(name));
        let mut ways = ArgumentAlternatives::default();
        for (name, argument) in branches.into_iter().flat_map(|branch| branch.arguments) {
            if !self.known.contains(&name) {
                ways.add(name, argument);
            }
        }
        self.add_arguments(ways.into_arguments());
    }

    fn add_arguments(&mut self, arguments: impl IntoIterator<Item = (Cow<'a, str>, JsonTree<'a>)>) {
        for (name, argument) in arguments {
            self.known.insert(name.clone());
            self.arguments.push((name, argument));
        }
    }

    fn require(&mut self, name: JsonTree<'a>) {
        if let JsonTree::Text(text) = &name
            && self.needed.insert(text.clone())
        {
            self.required.push(name);
        }
    }

    fn requires(&self, name: &JsonTree<'a>) -> bool {
        matches!(name, JsonTree::Text(text) if self.needed.contains(text))
    }
}

/// The schemas that the branches give each argument, in order of occurrence.
#[derive(Default)]
struct ArgumentAlternatives<'a> {
    places: HashMap<Cow<'a, str>, usize>,
    list: Vec<(Cow<'a, str>, Vec<JsonTree<'a>>)>,
}

impl<'a> ArgumentAlternatives<'a> {
    fn add(&mut self, name: Cow<'a, str>, argument: JsonTree<'a>) {
        let place = *self.places.entry(name.clone()).or_insert_with(|| {
            self.list.push((name, Vec::new()));
            self.list.len() - 1
        });
        let (_, ways) = &mut self.list[place];
        if ways.len() <= MAX_ALTERNATIVES && !ways.contains(&argument) {
            ways.push(argument);
        }
    }

    fn into_arguments(self) -> impl Iterator<Item = (Cow<'a, str>, JsonTree<'a>)> {
        self.list.into_iter().map(|(name, mut ways)| {
            let merged = match ways.len() {
                1 => ways.remove(0),
                many if many > MAX_ALTERNATIVES => JsonTree::Object(Vec::new()),
                _ => JsonTree::Object(vec![(Cow::Borrowed("anyOf"), JsonTree::List(ways))]),
            };
            (name, merged)
        })
    }
}
