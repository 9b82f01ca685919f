//! Selection of the tools offered to a model: all tools directly, or a search tool and a call tool for the others.
//!
//! The search tool and the call tool are not in the registry. A search is answered here from the current snapshot. A
//! call through the call tool resolves to the named tool and then proceeds like any other call, so observers and the
//! gate see only the named tool.

mod call_tool;
mod search_tool;

use std::collections::BTreeMap;
use std::sync::Arc;

use wharf_json::RawJson;
use wharf_spec::EscapedText;
use wharf_tools::{AbsenceExplainer, RegistryCallError, RegistrySnapshot, ToolDescription, ToolOutcome, closest_name};

use crate::provider::{ApiFormat, EncodedTools, ModelToolDefinition, UnencodableTool, encode_tools};
use search_tool::SearchTool;

/// Maximum bytes of the definitions of the search tool and the call tool together.
const MAX_SEARCH_AND_CALL_BYTES: usize = 6 * 1024;

/// The tools offered to a model from one registry snapshot. Rebuilt only when the snapshot's version changes.
pub(crate) struct ToolOffer {
    /// Tool definitions for requests, in the model's format.
    pub definitions: Arc<EncodedTools>,
    /// All callable tools by name.
    tools: BTreeMap<Arc<str>, Arc<ToolDescription>>,
    /// Access to the tools that are not offered directly.
    deferred: Option<DeferredTools>,
    /// Explains names that no tool has.
    absence: Option<AbsenceExplainer>,
}

/// The search tool and the call tool, which give access to the deferred tools.
struct DeferredTools {
    search: SearchTool,
    call: String,
}

/// Resolution of a call made by the model.
pub(crate) enum ResolvedCall {
    /// A call of a registry tool.
    Call {
        /// The tool's name in the registry.
        tool: String,
        /// The arguments.
        arguments: RawJson,
    },
    /// The outcome, without calling a registry tool, for example the result of a search.
    Answer(ToolOutcome),
}

impl ToolOffer {
    /// Builds the offer from a snapshot for a model format. If the encoded definitions exceed `most_tokens`, offers a
    /// search tool and a call tool in their place. Only tools accepted by `is_allowed` are available at all.
    ///
    /// The embedding program's own tools stay offered directly, in the order of their names, as long as they fit.
    pub fn from_snapshot(
        snapshot: &RegistrySnapshot,
        format: ApiFormat,
        most_tokens: u64,
        is_allowed: impl Fn(&str) -> bool,
    ) -> Self {
        let all = snapshot.iter().filter(|tool| tool.is_offered()).map(|tool| tool.description().clone());
        let tools: BTreeMap<_, _> =
            all.filter(|tool| is_allowed(&tool.name)).map(|tool| (tool.name.clone(), tool)).collect();
        let mut definitions =
            encode_tools(format, &tools.values().map(|tool| tool_definition(tool)).collect::<Vec<_>>());
        let deferred = (estimate_tokens(definitions.size_bytes()) > most_tokens).then(|| {
            retain_own_tools(&mut definitions, &tools, most_tokens);
            let hidden = tools.values().filter(|tool| !definitions.includes(&tool.name)).cloned().collect();
            DeferredTools::new(["SearchTools", "CallTool"].map(|name| unused_name(name, snapshot)), hidden)
        });
        let two = deferred.iter().flat_map(DeferredTools::definitions);
        two.for_each(|definition| definitions.add(format, &definition));
        for UnencodableTool { name, reason } in &definitions.withheld {
            tracing::warn!(tool = %EscapedText::single_line(name, 100), %reason, "tool not offered to the model");
        }
        Self { definitions: Arc::new(definitions), tools, deferred, absence: snapshot.absence_explainer() }
    }

    /// Returns the approximate number of tokens of the definitions in each request.
    pub fn tokens(&self) -> u64 {
        estimate_tokens(self.definitions.size_bytes())
    }

    /// Resolves a call by the name and the arguments that the model gave.
    ///
    /// A deferred tool can also be called directly by its own name, as models often do.
    pub fn resolve(&self, name: &str, arguments: &RawJson) -> ResolvedCall {
        match &self.deferred {
            Some(deferred) if name == deferred.search.name() => {
                ResolvedCall::Answer(deferred.search.run_search(arguments))
            }
            Some(deferred) if name == deferred.call => match call_tool::parse_arguments(arguments) {
                Ok((tool, arguments)) => self.resolve_name(&tool, arguments),
                Err(outcome) => ResolvedCall::Answer(outcome),
            },
            _ => self.resolve_name(name, arguments.clone()),
        }
    }

    fn resolve_name(&self, name: &str, arguments: RawJson) -> ResolvedCall {
        if self.tools.contains_key(name) {
            return ResolvedCall::Call { tool: name.to_owned(), arguments };
        }
        let close = || closest_name(name, self.tools.keys().map(|name| &**name)).map(Arc::from);
        let absence = self.absence.as_ref().and_then(|explain| explain(name)).map(RegistryCallError::Failed);
        let error = absence.unwrap_or_else(|| RegistryCallError::unknown_tool(name, close()));
        ResolvedCall::Answer(error.to_outcome())
    }
}

impl DeferredTools {
    /// Creates the two tools with these names for the tools that are not offered directly.
    fn new([search, call]: [String; 2], hidden: Vec<Arc<ToolDescription>>) -> Self {
        Self { search: SearchTool::new(search, &call, hidden), call }
    }

    fn definitions(&self) -> [ModelToolDefinition; 2] {
        [self.search.definition().clone(), call_tool::definition(&self.call, self.search.name())]
    }
}

/// Keeps the definitions of the embedding program's own tools, as many as fit next to the search and call tools.
fn retain_own_tools(
    definitions: &mut EncodedTools,
    tools: &BTreeMap<Arc<str>, Arc<ToolDescription>>,
    most_tokens: u64,
) {
    let mut left = most_tokens.saturating_sub(estimate_tokens(MAX_SEARCH_AND_CALL_BYTES));
    let is_own = |name: &str| tools.get(name).is_some_and(|tool| tool.source.is_none());
    definitions.retain(|name, bytes| match left.checked_sub(estimate_tokens(bytes)) {
        Some(rest) if is_own(name) => {
            left = rest;
            true
        }
        _ => false,
    });
}

/// Returns the name, with a number appended if a tool already has it.
fn unused_name(name: &str, snapshot: &RegistrySnapshot) -> String {
    let taken = |name: &str| snapshot.iter().any(|tool| &*tool.description().name == name);
    let numbered = (2..).map(|number: u64| format!("{name}{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
}

fn tool_definition(tool: &ToolDescription) -> ModelToolDefinition {
    let ToolDescription { name, text, schema, .. } = tool;
    ModelToolDefinition { name: name.to_string(), description: text.clone(), schema: schema.clone() }
}

/// Estimates the tokens of a text as a quarter of its bytes.
pub(crate) fn estimate_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
