//! Query parsing.

use std::collections::BTreeSet;

use super::MAX_QUERY_BYTES;
use super::synonyms::synonyms;
use super::words::{content_words, stem};

/// Minimum letters of an unknown word to match the beginnings of known words.
const MIN_PREFIX_LEN: usize = 3;
/// Maximum number of known words matched by prefix.
const MAX_PREFIX_MATCHES: usize = 8;
/// Weight of a prefix match.
const PREFIX_WEIGHT: f32 = 0.5;

/// One search term.
#[derive(Debug)]
pub(super) struct SearchTerm {
    /// Words that match the term, with their weights relative to the original word.
    pub(super) spellings: Vec<(String, f32)>,
}

/// Returns the terms of a query, with the spellings that occur in the vocabulary.
pub(super) fn parse_terms(query: &str, vocabulary: &BTreeSet<String>) -> Vec<SearchTerm> {
    let typed: Vec<String> = content_words(query, MAX_QUERY_BYTES).collect();
    // Joins adjacent words that also occur as one word: `time zone`, `file system`.
    let joined: Vec<String> =
        typed.windows(2).map(<[String]>::concat).filter(|word| vocabulary.contains(&stem(word))).collect();
    let mut seen = BTreeSet::new();
    let all = typed.into_iter().chain(joined).chain(implied_words(query));
    all.filter(|word| seen.insert(stem(word))).map(|word| build_term(&word, vocabulary)).collect()
}

fn build_term(typed: &str, vocabulary: &BTreeSet<String>) -> SearchTerm {
    let word = stem(typed);
    let mut spellings: Vec<(String, f32)> = synonyms(&word).map(|(other, worth)| (other.to_owned(), worth)).collect();
    if !vocabulary.contains(&word) && typed.len() >= MIN_PREFIX_LEN {
        let begun =
            vocabulary.range(typed.to_owned()..).take_while(|other| other.starts_with(typed)).take(MAX_PREFIX_MATCHES);
        spellings.extend(begun.map(|other| (other.clone(), PREFIX_WEIGHT)));
    }
    spellings.push((word, 1.0));
    spellings.retain(|(word, _)| vocabulary.contains(word));
    SearchTerm { spellings }
}

/// Returns words implied by the form of the query's parts: `notes.txt`, `09:30`, `4f2a91c`, two numbers.
fn implied_words(query: &str) -> impl Iterator<Item = String> {
    let parts = || query.split_whitespace().map(|part| part.trim_matches([',', '?', '!', ';', ')', '(', '"', '\'']));
    let numbers = parts().filter(|part| part.parse::<f64>().is_ok()).count();
    let found = [
        ("file", parts().any(looks_like_file)),
        ("time", parts().any(looks_like_time)),
        ("commit", parts().any(looks_like_hash)),
        ("url", parts().any(looks_like_url)),
        ("number", numbers > 1),
    ];
    found.into_iter().filter(|(_, is_there)| *is_there).map(|(word, _)| word.to_owned())
}

fn looks_like_file(part: &str) -> bool {
    let is_ending = |text: &str| (2..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase());
    !looks_like_url(part) && part.rsplit_once('.').is_some_and(|(name, end)| !name.is_empty() && is_ending(end))
}

fn looks_like_url(part: &str) -> bool {
    part.starts_with("http://") || part.starts_with("https://")
}

/// Reports whether a part is a time such as `3pm` or `09:30`.
fn looks_like_time(part: &str) -> bool {
    let is_number = |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let lower = part.to_ascii_lowercase();
    let (clock, half) = match lower.strip_suffix("am").or_else(|| lower.strip_suffix("pm")) {
        Some(clock) => (clock, true),
        None => (lower.as_str(), false),
    };
    match clock.split_once(':') {
        Some((hour, minute)) => is_number(hour) && is_number(minute),
        None => half && is_number(clock),
    }
}

/// Reports whether a part is an abbreviated or full commit hash.
fn looks_like_hash(part: &str) -> bool {
    let has = |is: fn(&u8) -> bool| part.bytes().any(|byte| is(&byte));
    (7..=40).contains(&part.len())
        && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_times_commits_numbers_and_urls_are_recognised() {
        for (query, expected) in [
            ("what is in notes.txt?", &["file"][..]),
            ("from 3pm to 18:00", &["time"]),
            ("what did 4f2a91c change", &["commit"]),
            ("add 17 and 2.5", &["number"]),
            ("read https://example.org", &["url"]),
            ("the facade of 1234567 houses, e.g. here", &[]),
        ] {
            let shapes: Vec<String> = implied_words(query).collect();
            assert_eq!(shapes, expected, "{query}");
        }
    }
}
