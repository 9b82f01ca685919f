//! Keyword search for tools.
//!
//! Ranks tools with Okapi BM25 over weighted fields. A match in the name weighs more than one in the description, and
//! repeating a word within a field has no effect. Synonyms of a query word also match, with a lower weight. Exact names
//! are looked up separately, so that ranking cannot hide them.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod field;
mod name_lookup;
mod query;
mod schema_arguments;
mod synonyms;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use bm25::{Embedding, Scorer, TokenEmbedder, TokenEmbedding};

use field::IndexedField;
use name_lookup::{NameIndex, NameMatch};
use query::SearchTerm;
pub use schema_arguments::schema_arguments;
use words::stemmed_words;

/// Maximum bytes of a query.
const MAX_QUERY_BYTES: usize = 400;
/// Maximum indexed bytes of a name or title.
const MAX_NAME_BYTES: usize = 256;
/// Maximum indexed bytes of a description, or of all argument descriptions together.
const MAX_TEXT_BYTES: usize = 4 * 1024;
/// Hits with less than this share of the best score are irrelevant.
const MIN_SCORE_SHARE: f32 = 0.03;
/// The same if the query is the exact name of a tool: fewer other tools are relevant then.
const MIN_SCORE_SHARE_WITH_EXACT_NAME: f32 = 0.3;

/// A tool to index. Texts may come from a server: untrusted.
#[derive(Debug, Clone, Copy)]
pub struct SearchableTool<'a> {
    /// Name of the provider.
    pub provider: &'a str,
    /// The provider's own name for the tool.
    pub name: &'a str,
    /// Other full names of the tool.
    pub aliases: &'a [&'a str],
    /// Title displayed to people.
    pub title: Option<&'a str>,
    /// Description of the tool.
    pub text: &'a str,
    /// Names and descriptions of the arguments.
    pub arguments: &'a [(&'a str, &'a str)],
}

/// A search index over tools. Hits refer to tools by their position in the input.
pub struct ToolIndex {
    names: NameIndex,
    scorer: Scorer<usize, u64>,
    /// All words that occur in any tool.
    vocabulary: BTreeSet<String>,
    tools: usize,
}

/// A search hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchHit {
    /// Position of the tool in the input.
    pub at: usize,
    /// Relevance. Only comparisons within one search are meaningful.
    pub score: f32,
}

impl ToolIndex {
    /// Builds an index. Takes about 40 ms for a thousand tools, so it should not run on an async worker thread.
    pub fn build<'a>(tools: impl IntoIterator<Item = SearchableTool<'a>>) -> Self {
        let tools: Vec<SearchableTool<'a>> = tools.into_iter().collect();
        let of_names = IndexedField::new(2.5, tools.iter().map(|tool| stemmed_words(tool.name, MAX_NAME_BYTES)));
        let of_titles = IndexedField::new(
            1.5,
            tools.iter().map(|tool| stemmed_words(tool.title.unwrap_or_default(), MAX_NAME_BYTES)),
        );
        let fields = [
            // Titles use the length of names: a single title would otherwise define the usual title length by itself.
            of_titles.with_reference_length_of(&of_names),
            of_names,
            IndexedField::new(1.0, tools.iter().map(|tool| stemmed_words(tool.text, MAX_TEXT_BYTES))),
            IndexedField::new(0.25, tools.iter().map(argument_words)),
            IndexedField::new(0.7, tools.iter().map(|tool| stemmed_words(tool.provider, MAX_NAME_BYTES))),
        ];
        let mut scorer = Scorer::new();
        (0..tools.len()).for_each(|at| scorer.upsert(&at, combine_fields(&fields, at)));
        let vocabulary = fields.iter().flat_map(IndexedField::words).cloned().collect();
        Self { names: NameIndex::from_tools(&tools), scorer, vocabulary, tools: tools.len() }
    }

    /// Returns the best tools for a query, best first. Tools with a matching name, in any spelling, rank before all
    /// others. Irrelevant tools are omitted.
    pub fn search(&self, query: &str, most: usize) -> Vec<SearchHit> {
        let query = &query[..query.floor_char_boundary(MAX_QUERY_BYTES)];
        let scores = self.scores(&query::parse_terms(query, &self.vocabulary));
        let named = self.names.find_named(query);
        let is_name = named.values().any(|how| *how == NameMatch::Verbatim);
        let share = if is_name { MIN_SCORE_SHARE_WITH_EXACT_NAME } else { MIN_SCORE_SHARE };
        let least = scores.iter().copied().fold(0.0, f32::max) * share;
        let fitting = scores.iter().enumerate().filter(|(_, score)| **score > 0.0 && **score >= least);
        let mut hits: Vec<SearchHit> = fitting.map(|(at, score)| SearchHit { at, score: *score }).collect();
        for (at, how) in named {
            hits.retain(|hit| hit.at != at);
            hits.push(SearchHit { at, score: scores[at] + name_bonus(how) });
        }
        hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.at.cmp(&other.at)));
        hits.truncate(most);
        hits
    }

    /// Returns the score of each tool: the sum of its term scores, times the share of terms that it matches.
    fn scores(&self, terms: &[SearchTerm]) -> Vec<f32> {
        let mut sums = vec![(0.0, 0.0); self.tools];
        for term in terms {
            for ((sum, had), worth) in sums.iter_mut().zip(self.term_scores(term)) {
                *sum += worth;
                *had += f32::from(worth > 0.0);
            }
        }
        let all = f32::from(u16::try_from(terms.len().max(1)).unwrap_or(u16::MAX));
        sums.into_iter().map(|(sum, had)| sum * had / all).collect()
    }

    /// Returns the score of a term for each tool. Only the best matching spelling is used, so that matching several
    /// spellings gains no advantage.
    fn term_scores(&self, term: &SearchTerm) -> Vec<f32> {
        let mut best = vec![0f32; self.tools];
        for (word, worth) in &term.spellings {
            let embedding = Embedding(vec![TokenEmbedding { index: u64::embed(word), value: 1.0 }]);
            for found in self.scorer.matches(&embedding) {
                best[found.id] = best[found.id].max(found.score * worth);
            }
        }
        best
    }
}

/// Sums the word weights of a tool over all fields. Word rarity is computed over all fields as well, so that a tool
/// gains no advantage from being the only one with a word in some field.
fn combine_fields(fields: &[IndexedField], at: usize) -> Embedding<u64> {
    let mut worth: BTreeMap<u64, f32> = BTreeMap::new();
    for word in fields.iter().flat_map(|field| field.word_weights(at)) {
        *worth.entry(word.index).or_default() += word.value;
    }
    Embedding(worth.into_iter().map(|(index, value)| TokenEmbedding { index, value }).collect())
}

fn argument_words(tool: &SearchableTool<'_>) -> Vec<String> {
    let mut text = String::new();
    for (name, description) in tool.arguments {
        if text.len() < MAX_TEXT_BYTES {
            text.extend([name, " ", description, " "]);
        }
    }
    stemmed_words(&text, MAX_TEXT_BYTES)
}

/// Returns the bonus for a matching name, which exceeds any sum of term scores.
fn name_bonus(how: NameMatch) -> f32 {
    match how {
        NameMatch::Letters => 1e5,
        NameMatch::Words => 2e5,
        NameMatch::Verbatim => 3e5,
    }
}

#[cfg(test)]
mod tests;
