//! Finding tools by what they are for.
//!
//! Okapi BM25 over what is known of a tool, its fields weighted: what a name says counts for more than what a description says,
//! and however often a field repeats a word, that is worth little more than saying it once. A word of the query also finds
//! what people say in its place, for less. Names are looked up besides, so that no statistics can lose one.

mod arguments;
mod field;
mod names;
mod query;
mod synonyms;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use bm25::{Embedding, Scorer, TokenEmbedder, TokenEmbedding};

pub use arguments::arguments;
use field::Field;
use names::{Named, Names};
use query::Term;
use words::words;

/// The most bytes of a query that are read.
const LONGEST_QUERY: usize = 400;
/// The most bytes of a name, or of a title, that are searched.
const LONGEST_NAME: usize = 256;
/// The most bytes of a description, or of all that is said of the arguments, that are searched.
const LONGEST_TEXT: usize = 4 * 1024;
/// What fits less than this share of what the best does has nothing to do with the query.
const LEAST_SHARE: f32 = 0.03;
/// The same where the query is a tool's name to the letter: who wants that one wants few others.
const LEAST_SHARE_BESIDE_NAMED: f32 = 0.3;

/// A tool as it is searched for. Texts may be a server's: untrusted.
#[derive(Debug, Clone, Copy)]
pub struct Searched<'a> {
    /// Who provides it.
    pub provider: &'a str,
    /// What its provider calls it.
    pub name: &'a str,
    /// Other names it goes by, in full.
    pub aliases: &'a [&'a str],
    /// What it is called where people see it.
    pub title: Option<&'a str>,
    /// What it does.
    pub text: &'a str,
    /// The names of its arguments, and what is said of them.
    pub arguments: &'a [(&'a str, &'a str)],
}

/// Tools in the order they were given, ready to be searched.
pub struct Index {
    names: Names,
    scorer: Scorer<usize, u64>,
    /// Every word that any tool has.
    vocabulary: BTreeSet<String>,
    tools: usize,
}

/// A tool that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Which one, in the order they were given.
    pub at: usize,
    /// How well it fits; greater is better, and only the order means something.
    pub score: f32,
}

impl Index {
    /// Makes an index. Some forty milliseconds for a thousand tools: nothing for a thread that others wait for.
    pub fn of<'a>(tools: impl IntoIterator<Item = Searched<'a>>) -> Self {
        let tools: Vec<Searched<'a>> = tools.into_iter().collect();
        let of_names = Field::of(2.5, tools.iter().map(|tool| words(tool.name, LONGEST_NAME)));
        let of_titles = Field::of(1.5, tools.iter().map(|tool| words(tool.title.unwrap_or_default(), LONGEST_NAME)));
        let fields = [
            // Whoever alone has a title would say how long one is.
            of_titles.with_length_of(&of_names),
            of_names,
            Field::of(1.0, tools.iter().map(|tool| words(tool.text, LONGEST_TEXT))),
            Field::of(0.25, tools.iter().map(of_arguments)),
            Field::of(0.7, tools.iter().map(|tool| words(tool.provider, LONGEST_NAME))),
        ];
        let mut scorer = Scorer::new();
        (0..tools.len()).for_each(|at| scorer.upsert(&at, together(&fields, at)));
        let vocabulary = fields.iter().flat_map(Field::words).cloned().collect();
        Self { names: Names::of(&tools), scorer, vocabulary, tools: tools.len() }
    }

    /// The best tools for a query, the best first: those named exactly so, whichever way the name is spelt, before all
    /// others. Tools that have nothing to do with it are left out.
    pub fn search(&self, query: &str, most: usize) -> Vec<Hit> {
        let query = &query[..query.floor_char_boundary(LONGEST_QUERY)];
        let scores = self.scores(&query::terms(query, &self.vocabulary));
        let named = self.names.named(query);
        let is_name = named.values().any(|how| *how == Named::Verbatim);
        let share = if is_name { LEAST_SHARE_BESIDE_NAMED } else { LEAST_SHARE };
        let least = scores.iter().copied().fold(0.0, f32::max) * share;
        let fitting = scores.iter().enumerate().filter(|(_, score)| **score > 0.0 && **score >= least);
        let mut hits: Vec<Hit> = fitting.map(|(at, score)| Hit { at, score: *score }).collect();
        for (at, how) in named {
            hits.retain(|hit| hit.at != at);
            hits.push(Hit { at, score: scores[at] + head_start(how) });
        }
        hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.at.cmp(&other.at)));
        hits.truncate(most);
        hits
    }

    /// How well each tool fits: what the terms are worth to it, times the share of them that it has anything of.
    fn scores(&self, terms: &[Term]) -> Vec<f32> {
        let mut sums = vec![(0.0, 0.0); self.tools];
        for term in terms {
            for ((sum, had), worth) in sums.iter_mut().zip(self.worth(term)) {
                *sum += worth;
                *had += f32::from(worth > 0.0);
            }
        }
        let all = f32::from(u16::try_from(terms.len().max(1)).unwrap_or(u16::MAX));
        sums.into_iter().map(|(sum, had)| sum * had / all).collect()
    }

    /// What a term is worth to each tool: as much as the best of its spellings, so that whoever says them all gains nothing.
    fn worth(&self, term: &Term) -> Vec<f32> {
        let mut best = vec![0f32; self.tools];
        for (word, worth) in &term.spellings {
            let said = Embedding(vec![TokenEmbedding { index: u64::embed(word), value: 1.0 }]);
            for found in self.scorer.matches(&said) {
                best[found.id] = best[found.id].max(found.score * worth);
            }
        }
        best
    }
}

/// What each word of a tool is worth, all fields together. How rare a word is counts over all of them as well: nobody can
/// be the only one to have it in some field.
fn together(fields: &[Field], at: usize) -> Embedding<u64> {
    let mut worth: BTreeMap<u64, f32> = BTreeMap::new();
    for word in fields.iter().flat_map(|field| field.worth(at)) {
        *worth.entry(word.index).or_default() += word.value;
    }
    Embedding(worth.into_iter().map(|(index, value)| TokenEmbedding { index, value }).collect())
}

fn of_arguments(tool: &Searched<'_>) -> Vec<String> {
    let mut text = String::new();
    for (name, said) in tool.arguments {
        if text.len() < LONGEST_TEXT {
            text.extend([name, " ", said, " "]);
        }
    }
    words(&text, LONGEST_TEXT)
}

/// What a name is worth, which is more than all the words of a query together.
fn head_start(how: Named) -> f32 {
    match how {
        Named::Letters => 1e5,
        Named::Words => 2e5,
        Named::Verbatim => 3e5,
    }
}

#[cfg(test)]
mod tests;
