//! References in the copy that lead nowhere in it: what they led to has been put elsewhere, or was left out.

use std::collections::HashMap;

use wharf_spec::Untrusted;

use crate::catalog::tree::{Members, Tree};

use super::copy::TOLD;
use super::measure::resolve;

/// Dropping a reference can be the end of another, but hardly more often than this; then all of them go.
const MOST_ROUNDS: usize = 4;

/// The schema without references that lead nowhere in it, and without one at its top, which no provider takes. Says
/// which was dropped, escaped, if any was.
pub(super) fn complete(mut members: Members<'_>) -> (Tree<'_>, Option<String>) {
    let mut dropped = None;
    if let Some(at) = members.iter().position(|(key, _)| key == "$ref") {
        dropped = members.remove(at).1.text().map(told);
    }
    let mut top = Tree::Object(members);
    for round in 1.. {
        let mut leads = HashMap::new();
        look(&top, &top, &mut leads);
        let all = round > MOST_ROUNDS;
        leads.retain(|_, leads| all || !*leads);
        let Some(first) = leads.keys().min() else { break };
        dropped.get_or_insert_with(|| told(first));
        drop_from(&mut top, &leads);
    }
    (top, dropped)
}

fn told(reference: &str) -> String {
    Untrusted::new(reference).shortened(TOLD).to_string()
}

/// Finds every reference, and whether it leads to a schema.
fn look<'a>(tree: &Tree<'a>, top: &Tree<'a>, leads: &mut HashMap<String, bool>) {
    match tree {
        Tree::Scalar(_) | Tree::Text(_) => {}
        Tree::List(items) => items.iter().for_each(|item| look(item, top, leads)),
        Tree::Object(members) => {
            for (key, value) in members {
                match (&**key, value) {
                    ("$ref", Tree::Text(reference)) if !leads.contains_key(&**reference) => {
                        let target = resolve(top, reference);
                        let schema = matches!(target, Some(Tree::Object(_) | Tree::Scalar("true" | "false")));
                        leads.insert(reference.to_string(), schema);
                    }
                    _ => look(value, top, leads),
                }
            }
        }
    }
}

fn drop_from(tree: &mut Tree<'_>, unwanted: &HashMap<String, bool>) {
    match tree {
        Tree::Scalar(_) | Tree::Text(_) => {}
        Tree::List(items) => items.iter_mut().for_each(|item| drop_from(item, unwanted)),
        Tree::Object(members) => {
            members
                .retain(|(key, value)| key != "$ref" || value.text().is_none_or(|text| !unwanted.contains_key(text)));
            members.iter_mut().for_each(|(_, value)| drop_from(value, unwanted));
        }
    }
}
