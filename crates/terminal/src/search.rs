//! `tools --search`: ranks tools by keywords, with the same index as the agent.

use std::sync::Arc;

use wharf::catalog::CatalogTool;
use wharf_search::{SearchHit, SearchableTool, ToolIndex, schema_arguments};

/// Maximum number of tools that a search finds.
const MAX_FOUND: usize = 20;
/// Tools with less than this share of the best score are not shown.
const MIN_SCORE_SHARE: f32 = 0.35;
/// Scores above this come from a matching name, not from words.
const NAME_SCORE: f32 = 1e5;

/// Returns the rank of each tool, 0 being the best. `None` for tools that do not match, or much worse than the best.
pub fn rank_tools(tools: &[Arc<CatalogTool>], words: &str) -> Vec<Option<usize>> {
    let mut places = vec![None; tools.len()];
    for (place, hit) in best_hits(index(tools).search(words, usize::MAX)).into_iter().enumerate() {
        places[hit.at] = Some(place);
    }
    places
}

/// Cuts the hits after the best ones.
fn best_hits(mut hits: Vec<SearchHit>) -> Vec<SearchHit> {
    let by_words = hits.iter().map(|hit| hit.score).filter(|score| *score < NAME_SCORE);
    let least = by_words.fold(0.0, f32::max) * MIN_SCORE_SHARE;
    hits.retain(|hit| hit.score >= least);
    hits.truncate(MAX_FOUND);
    hits
}

fn index(tools: &[Arc<CatalogTool>]) -> ToolIndex {
    let schemas = tools.iter().map(|tool| tool.definition.input_schema.as_ref());
    let arguments: Vec<Vec<(String, String)>> =
        schemas.map(|schema| schema.map(schema_arguments).unwrap_or_default()).collect();
    let arguments: Vec<Vec<(&str, &str)>> = arguments
        .iter()
        .map(|list| list.iter().map(|(name, description)| (&**name, &**description)).collect())
        .collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// U10.
    #[test]
    fn weak_hits_are_cut() {
        let hits = |scores: &[f32]| -> Vec<SearchHit> {
            scores.iter().enumerate().map(|(at, score)| SearchHit { at, score: *score }).collect()
        };
        for (scores, kept) in
            [(&[8.0, 4.0, 2.0, 1.0][..], 2), (&[3e5, 8.0, 4.0, 1.0], 3), (&[3e5], 1), (&[], 0), (&[5.0; 60], MAX_FOUND)]
        {
            assert_eq!(best_hits(hits(scores)).len(), kept, "{scores:?}");
        }
    }
}
