//! Removal of dangling references from the copy. Their targets have been moved or removed.

use std::collections::HashMap;

use wharf_spec::UntrustedText;

use crate::catalog::tree::{JsonMembers, JsonTree};

use super::copy::MAX_REPORTED_CHARS;
use super::measure::resolve_pointer;

/// Maximum number of rounds. Dropping a reference can invalidate another one, but rarely more often; afterwards all
/// references are dropped.
const MAX_DROP_ROUNDS: usize = 4;

/// Removes dangling references, and a top-level one, which no provider accepts. Returns a dropped reference, escaped,
/// if there is one.
pub(super) fn drop_dangling(mut members: JsonMembers<'_>) -> (JsonTree<'_>, Option<String>) {
    let mut dropped = None;
    if let Some(at) = members.iter().position(|(key, _)| key == "$ref") {
        dropped = members.remove(at).1.text().map(shorten_reference);
    }
    let mut top = JsonTree::Object(members);
    for round in 1.. {
        let mut leads = HashMap::new();
        collect_references(&top, &top, &mut leads);
        let all = round > MAX_DROP_ROUNDS;
        leads.retain(|_, leads| all || !*leads);
        let Some(first) = leads.keys().min() else { break };
        dropped.get_or_insert_with(|| shorten_reference(first));
        remove_references(&mut top, &leads);
    }
    (top, dropped)
}

fn shorten_reference(reference: &str) -> String {
    UntrustedText::new(reference).truncate(MAX_REPORTED_CHARS).to_string()
}

/// Finds every reference and whether its target is a schema.
fn collect_references<'a>(tree: &JsonTree<'a>, top: &JsonTree<'a>, leads: &mut HashMap<String, bool>) {
    match tree {
        JsonTree::Scalar(_) | JsonTree::Text(_) => {}
        JsonTree::List(items) => items.iter().for_each(|item| collect_references(item, top, leads)),
        JsonTree::Object(members) => {
            for (key, value) in members {
                match (&**key, value) {
                    ("$ref", JsonTree::Text(reference)) if !leads.contains_key(&**reference) => {
                        let target = resolve_pointer(top, reference);
                        let schema = matches!(target, Some(JsonTree::Object(_) | JsonTree::Scalar("true" | "false")));
                        leads.insert(reference.to_string(), schema);
                    }
                    _ => collect_references(value, top, leads),
                }
            }
        }
    }
}

fn remove_references(tree: &mut JsonTree<'_>, unwanted: &HashMap<String, bool>) {
    match tree {
        JsonTree::Scalar(_) | JsonTree::Text(_) => {}
        JsonTree::List(items) => items.iter_mut().for_each(|item| remove_references(item, unwanted)),
        JsonTree::Object(members) => {
            members
                .retain(|(key, value)| key != "$ref" || value.text().is_none_or(|text| !unwanted.contains_key(text)));
            members.iter_mut().for_each(|(_, value)| remove_references(value, unwanted));
        }
    }
}
