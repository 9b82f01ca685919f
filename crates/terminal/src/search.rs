//! `tools --search`: ranks tools by keywords, with the same index as the agent.

use std::sync::Arc;

use wharf::catalog::CatalogTool;
use wharf_agent::search::{SearchableTool, ToolIndex, schema_arguments};

/// Returns the rank of each tool, 0 being the best. `None` for tools that do not match.
pub fn rank_tools(tools: &[Arc<CatalogTool>], words: &str) -> Vec<Option<usize>> {
    let mut places = vec![None; tools.len()];
    for (place, hit) in index(tools).search(words, usize::MAX).into_iter().enumerate() {
        places[hit.at] = Some(place);
    }
    places
}

fn index(tools: &[Arc<CatalogTool>]) -> ToolIndex {
    let schemas = tools.iter().map(|tool| tool.definition.input_schema.as_ref());
    let arguments: Vec<Vec<(String, String)>> =
        schemas.map(|schema| schema.map(schema_arguments).unwrap_or_default()).collect();
    let arguments: Vec<Vec<(&str, &str)>> =
        arguments.iter().map(|list| list.iter().map(|(name, said)| (&**name, &**said)).collect()).collect();
    let aliases: Vec<[&str; 1]> = tools.iter().map(|tool| [&**tool.alias()]).collect();
    ToolIndex::build(tools.iter().zip(&arguments).zip(&aliases).map(|((tool, arguments), aliases)| SearchableTool {
        provider: tool.id.server.as_str(),
        name: &tool.id.tool,
        aliases,
        title: tool.definition.title.as_deref(),
        text: tool.definition.description.as_deref().unwrap_or_default(),
        arguments,
    }))
}
