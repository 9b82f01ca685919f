//! Splitting and stemming of words for comparison.
//!
//! Names are split at word boundaries, and English words lose their endings, so that `listIssues` and "the issues that
//! are listed" share two words. Stems need not be English words: the index and the query are treated alike.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Stop words.
static STOP_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "a about above after again all also am an and any are as at be because been before being both but by can could \
     d did do does doing done each either else etc for from had has have having he her here hers him his how i if in \
     into is it its just ll m may me might mine more most must my need no nor not of off on once only or other our ours \
     out over own please re s same shall she should so some such t than that the their them then there these they this \
     those through to too tool tools under until up us use used uses using ve very via want was we were what when where \
     which while who whom whose why will with would you your yours"
        .split_whitespace()
        .collect()
});

/// Returns the stemmed words of a text in order, without stop words, from at most `most_bytes` bytes.
pub(super) fn stemmed_words(text: &str, most_bytes: usize) -> Vec<String> {
    content_words(text, most_bytes).map(|piece| stem(&piece)).collect()
}

/// Returns the unstemmed words of a text without stop words, from at most `most_bytes` bytes.
pub(super) fn content_words(text: &str, most_bytes: usize) -> impl Iterator<Item = String> {
    let text = &text[..text.floor_char_boundary(most_bytes)];
    split_words(text).into_iter().filter(|piece| !STOP_WORDS.contains(piece.as_str()))
}

/// Returns all words of a text, unstemmed, in lower case.
pub(super) fn split_words(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut before: Option<char> = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let kept = Some(letter).filter(|letter| letter.is_alphanumeric());
        if let Some(letter) = kept {
            if before.is_none_or(|before| is_word_start(before, letter, letters.peek().copied())) {
                pieces.push(String::new());
            }
            if let Some(piece) = pieces.last_mut() {
                piece.extend(letter.to_lowercase());
            }
        }
        before = kept;
    }
    pieces
}

/// Reports whether a word starts at this letter: at a capital in `camelCase`, at the last capital of `HTTPServer`, at a
/// change between digits and letters, and at every character of a script without spaces.
fn is_word_start(before: char, letter: char, next: Option<char>) -> bool {
    let hump = letter.is_uppercase() && (!before.is_uppercase() || next.is_some_and(char::is_lowercase));
    let digits = before.is_numeric() != letter.is_numeric();
    hump || digits || is_cjk(before) || is_cjk(letter)
}

/// Reports whether a character is Kana or Han.
fn is_cjk(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

/// Removes the endings of plurals and verbs.
pub(super) fn stem(word: &str) -> String {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let word = strip_verb_ending(strip_plural(word.to_owned()));
    let word = word.strip_suffix("ion").filter(|rest| rest.len() >= 3 && rest.ends_with('t')).unwrap_or(&word);
    let word = word.strip_suffix("ly").filter(|rest| rest.len() >= 5).unwrap_or(word);
    let word = word.strip_suffix('e').filter(|rest| rest.len() >= 3).unwrap_or(word);
    strip_doubled_consonant(word).to_owned()
}

fn strip_plural(word: String) -> String {
    let long = |rest: &&str| rest.len() >= 3;
    if let Some(rest) = word.strip_suffix("ies").or_else(|| word.strip_suffix("ied")).filter(|rest| rest.len() >= 2) {
        return format!("{rest}y");
    }
    let hissing = ["ches", "shes", "sses", "xes", "zes"].iter().any(|ending| word.ends_with(ending));
    let none = ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending));
    match hissing {
        true => word.strip_suffix("es"),
        false => word.strip_suffix('s').filter(|_| !none).filter(long),
    }
    .map_or(word.clone(), str::to_owned)
}

fn strip_verb_ending(word: String) -> String {
    let is_verb = |rest: &&str| rest.len() >= 3 && rest.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    let ending = word.strip_suffix("ing").or_else(|| word.strip_suffix("ed").filter(|rest| !rest.ends_with('e')));
    ending.filter(is_verb).map_or(word.clone(), str::to_owned)
}

/// Removes a doubled final consonant: `committ` becomes `commit`, and `add` becomes the stem of `adding`.
fn strip_doubled_consonant(word: &str) -> &str {
    let mut letters = word.chars().rev();
    let doubled = letters.next().zip(letters.next()).is_some_and(|(last, other)| last == other);
    if doubled && !word.ends_with(['a', 'e', 'i', 'o', 'u']) { &word[..word.len() - 1] } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_case_punctuation_and_digits() {
        for (text, expected) in [
            ("readFile_v2 - HTTPServer.now!", &["read", "file", "v", "2", "http", "server", "now"][..]),
            ("git_create-branch", &["git", "create", "branch"]),
            ("GREAT_NEWS", &["great", "news"]),
            ("base64", &["base", "64"]),
            ("größeÄndern", &["größe", "ändern"]),
            ("時刻を tell", &["時", "刻", "を", "tell"]),
            (" \u{1b}[31m ", &["31", "m"]),
            ("", &[]),
        ] {
            assert_eq!(split_words(text), expected, "{text}");
        }
    }

    #[test]
    fn inflected_forms_have_one_stem() {
        for forms in [
            &["file", "files", "filing"][..],
            &["query", "queries", "queried", "querying"],
            &["create", "creates", "created", "creating", "creation"],
            &["add", "adds", "added", "adding"],
            &["commit", "commits", "committed", "committing"],
            &["branch", "branches", "branching"],
            &["process", "processes", "processed", "processing"],
            &["relation", "relations", "related", "relate"],
            &["recursive", "recursively"],
            &["stage", "staged", "staging"],
        ] {
            let stems: Vec<String> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.iter().all(|other| *other == stems[0]), "{forms:?}: {stems:?}");
        }
    }

    #[test]
    fn different_words_have_different_stems() {
        for (one, other) in
            [("string", "str"), ("status", "state"), ("this", "thing"), ("feed", "fee"), ("zip", "zips2")]
        {
            assert_ne!(stem(one), stem(other), "{one} {other}");
        }
    }

    #[test]
    fn text_is_read_up_to_the_limit() {
        assert_eq!(stemmed_words("the tides of the höhe", 19), ["tid", "h"]);
    }
}
