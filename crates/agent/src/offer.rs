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
use wharf_spec::Shown;
use wharf_tools::{CallFailure, Description, Outcome, Snapshot, nearest};

use crate::provider::{Compiled, Definition, Format, Withheld, compile};
use search_tool::SearchTool;

/// The most bytes of the definitions of the two tools together.
const OWN_BYTES: usize = 6 * 1024;

/// What a model is offered of the tools of one moment. Made anew only when the snapshot's version changes.
pub(crate) struct Offering {
    /// What goes with a request, as the model's format has it.
    pub definitions: Arc<Compiled>,
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
    /// Offers the tools of a snapshot to a model of a format; where their definitions, as they are sent, take more than so
    /// many tokens, a search tool and a call tool in their place. `wanted` says which tools there are at all.
    ///
    /// Tools of one's own stay beside the two, in the order of their names, as long as there is room.
    pub fn of(snapshot: &Snapshot, format: Format, most_tokens: u64, wanted: impl Fn(&str) -> bool) -> Self {
        let all = snapshot.iter().map(|tool| tool.description().clone());
        let tools: BTreeMap<_, _> =
            all.filter(|tool| wanted(&tool.name)).map(|tool| (tool.name.clone(), tool)).collect();
        let mut definitions = compile(format, &tools.values().map(|tool| definition(tool)).collect::<Vec<_>>());
        let finding = (tokens(definitions.size()) > most_tokens).then(|| {
            keep_own(&mut definitions, &tools, most_tokens);
            let hidden = tools.values().filter(|tool| !definitions.tells_of(&tool.name)).cloned().collect();
            Finding::new(["SearchTools", "CallTool"].map(|name| free_name(name, snapshot)), hidden)
        });
        let two = finding.iter().flat_map(Finding::definitions);
        two.for_each(|definition| definitions.add(format, &definition));
        for Withheld { name, reason } in &definitions.withheld {
            tracing::warn!(tool = %Shown::line(name, 100), %reason, "a tool is withheld from the model");
        }
        Self { definitions: Arc::new(definitions), tools, finding }
    }

    /// About how many tokens go with each request.
    pub fn tokens(&self) -> u64 {
        tokens(self.definitions.size())
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
        Meaning::Answer(CallFailure::unknown(name, close).to_outcome())
    }
}

impl Finding {
    /// The two by these names, for tools that the model is not told of.
    fn new([search, call]: [String; 2], hidden: Vec<Arc<Description>>) -> Self {
        Self { search: SearchTool::new(search, &call, hidden), call }
    }

    fn definitions(&self) -> [Definition; 2] {
        [self.search.definition().clone(), call_tool::definition(&self.call, self.search.name())]
    }
}

/// Keeps the definitions of tools of one's own, as many as fit beside the two.
fn keep_own(definitions: &mut Compiled, tools: &BTreeMap<Arc<str>, Arc<Description>>, most_tokens: u64) {
    let mut left = most_tokens.saturating_sub(tokens(OWN_BYTES));
    let is_own = |name: &str| tools.get(name).is_some_and(|tool| tool.origin.is_none());
    definitions.keep(|name, bytes| match left.checked_sub(tokens(bytes)) {
        Some(rest) if is_own(name) => {
            left = rest;
            true
        }
        _ => false,
    });
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

/// About how many tokens a text is, before anybody has counted: a quarter of its bytes.
pub(crate) fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
