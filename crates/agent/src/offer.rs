//! Which tools a model is told of: all, or two to find and call the others by.
//!
//! The two are none of the registry's tools. A search is answered here, from the catalog of the moment; a call by its name
//! means the tool that is named, which goes the way of every other call, so that whoever watches or permits calls never
//! sees that it came by another one.

mod call_tool;
mod search_tool;

use std::collections::BTreeMap;
use std::sync::Arc;

use wharf_json::Raw;
use wharf_tools::{CallFailure, Description, Outcome, Snapshot, nearest};

use crate::provider::Definition;
use search_tool::SearchTool;

/// The most bytes of the definitions of the two tools together.
const OWN_BYTES: usize = 6 * 1024;

/// What a model is offered of the tools of one moment. Made anew only when the snapshot's version changes.
pub(crate) struct Offering {
    /// What goes with a request.
    pub definitions: Vec<Definition>,
    /// Everything that can be called, by name.
    tools: BTreeMap<Arc<str>, Arc<Description>>,
    /// How the model gets at what is not offered.
    finding: Option<Finding>,
}

/// The two tools by which a model finds and calls the others.
struct Finding {
    search: SearchTool,
    call: String,
}

/// What a call that the model made means.
pub(crate) enum Meaning {
    /// A call of this tool of the registry.
    Call {
        /// The tool's name in the registry.
        tool: String,
        /// With what.
        arguments: Raw,
    },
    /// Nothing is to be called: this is the answer, for instance what a search found.
    Answer(Outcome),
}

impl Offering {
    /// Offers the tools of a snapshot; where their definitions take more than so many tokens, a search tool and a call
    /// tool in their place. `wanted` says which tools there are at all.
    ///
    /// Tools of one's own stay beside the two, in the order of their names, as long as there is room.
    pub fn of(snapshot: &Snapshot, most_tokens: u64, wanted: impl Fn(&str) -> bool) -> Self {
        let all = snapshot.iter().map(|tool| tool.description().clone());
        let all: Vec<Arc<Description>> = all.filter(|tool| wanted(&tool.name)).collect();
        let tools = all.iter().map(|tool| (tool.name.clone(), tool.clone())).collect();
        if all.iter().map(|tool| size(tool)).sum::<u64>() <= most_tokens {
            return Self { definitions: all.iter().map(|tool| definition(tool)).collect(), tools, finding: None };
        }
        let (offered, hidden) = divided(all, most_tokens);
        let [search, call] = ["SearchTools", "CallTool"].map(|name| free_name(name, snapshot));
        let search = SearchTool::new(search, &call, hidden);
        let mut definitions: Vec<Definition> = offered.iter().map(|tool| definition(tool)).collect();
        definitions.extend([search.definition().clone(), call_tool::definition(&call, search.name())]);
        Self { definitions, tools, finding: Some(Finding { search, call }) }
    }

    /// What a call means, by the name and the arguments the model gave.
    ///
    /// A tool that was found can also be called by its own name, which models like to do.
    pub fn meaning(&self, name: &str, arguments: &Raw) -> Meaning {
        match &self.finding {
            Some(finding) if name == finding.search.name() => Meaning::Answer(finding.search.answer(arguments)),
            Some(finding) if name == finding.call => match call_tool::read(arguments) {
                Ok((tool, arguments)) => self.call(&tool, arguments),
                Err(outcome) => Meaning::Answer(outcome),
            },
            _ => self.call(name, arguments.clone()),
        }
    }

    fn call(&self, name: &str, arguments: Raw) -> Meaning {
        if self.tools.contains_key(name) {
            return Meaning::Call { tool: name.to_owned(), arguments };
        }
        let close = nearest(name, self.tools.keys().map(|name| &**name)).map(Arc::from);
        let name = name.chars().take(LONGEST_SAID).collect();
        Meaning::Answer(CallFailure::Unknown { name, nearest: close }.to_outcome())
    }
}

/// What was said is repeated in errors, so not all of it is kept.
const LONGEST_SAID: usize = 200;

/// The tools that are offered beside the two, and those that have to be found.
fn divided(all: Vec<Arc<Description>>, most_tokens: u64) -> (Vec<Arc<Description>>, Vec<Arc<Description>>) {
    let mut left = most_tokens.saturating_sub(tokens(OWN_BYTES));
    all.into_iter().partition(|tool| match left.checked_sub(size(tool)) {
        Some(rest) if tool.origin.is_none() => {
            left = rest;
            true
        }
        _ => false,
    })
}

/// The name itself, or with a number where a tool has it already.
fn free_name(name: &str, snapshot: &Snapshot) -> String {
    let taken = |name: &str| snapshot.iter().any(|tool| &*tool.description().name == name);
    let numbered = (2..).map(|number: u64| format!("{name}{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
}

fn definition(tool: &Description) -> Definition {
    let Description { name, text, schema, .. } = tool;
    Definition { name: name.to_string(), description: text.clone(), schema: schema.clone() }
}

fn size(tool: &Description) -> u64 {
    tokens(tool.name.len() + tool.text.len() + tool.schema.as_bytes().len())
}

/// About how many tokens a text is, before anybody has counted: a quarter of its bytes.
pub(crate) fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
