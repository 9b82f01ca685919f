//! What a query asks for, word by word.

use std::collections::BTreeSet;

use super::LONGEST_QUERY;
use super::synonyms::synonyms;
use super::words::{stem, telling};

/// How many letters of a word nobody uses have to be the beginning of one that somebody does.
const SHORTEST_BEGINNING: usize = 3;
/// The most words that are tried for one that nobody uses.
const MOST_BEGUN: usize = 8;
/// What such a word is worth.
const BEGUN_WORTH: f32 = 0.5;

/// One thing that is asked for.
#[derive(Debug)]
pub(super) struct Term {
    /// The words that say it, and what each is worth beside the one that was said.
    pub(super) spellings: Vec<(String, f32)>,
}

/// What a query asks for, of what can be found in a vocabulary.
pub(super) fn terms(query: &str, vocabulary: &BTreeSet<String>) -> Vec<Term> {
    let said: Vec<String> = telling(query, LONGEST_QUERY).collect();
    // What one writes as two words another writes as one: `time zone`, `file system`.
    let joined: Vec<String> =
        said.windows(2).map(<[String]>::concat).filter(|word| vocabulary.contains(&stem(word))).collect();
    let file = names_a_file(query).then(|| "file".to_owned());
    let mut seen = BTreeSet::new();
    let all = said.into_iter().chain(joined).chain(file);
    all.filter(|word| seen.insert(stem(word))).map(|word| term(&word, vocabulary)).collect()
}

fn term(said: &str, vocabulary: &BTreeSet<String>) -> Term {
    let word = stem(said);
    let mut spellings: Vec<(String, f32)> = synonyms(&word).map(|(other, worth)| (other.to_owned(), worth)).collect();
    if !vocabulary.contains(&word) && said.len() >= SHORTEST_BEGINNING {
        let begun = vocabulary.range(said.to_owned()..).take_while(|other| other.starts_with(said)).take(MOST_BEGUN);
        spellings.extend(begun.map(|other| (other.clone(), BEGUN_WORTH)));
    }
    spellings.push((word, 1.0));
    spellings.retain(|(word, _)| vocabulary.contains(word));
    Term { spellings }
}

/// Whether something in a query looks like `notes.txt`.
fn names_a_file(query: &str) -> bool {
    let is_ending = |text: &str| (2..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_file = |part: &str| part.rsplit_once('.').is_some_and(|(name, end)| !name.is_empty() && is_ending(end));
    query.split_whitespace().any(is_file)
}
