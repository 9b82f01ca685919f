//! `cargo xtask lint`: figures of the workspace's language: comments in plain sentences, types that can be searched.
//!
//! Reads the sources of all crates but those of tests, and compares each figure with its limit.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::run::TaskResult;

/// Pronouns that name no component.
const VAGUE_PRONOUNS: [&str; 14] = [
    "whoever",
    "whatever",
    "whichever",
    "somebody",
    "someone",
    "nobody",
    "anybody",
    "anyone",
    "whom",
    "somewhere",
    "nowhere",
    "wherever",
    "whomever",
    "no one",
];
/// Words that open a comment with a question.
const OPENERS: [&str; 12] =
    ["What", "How", "Whether", "Where", "Why", "Which", "Who", "Whoever", "Whom", "Nobody", "Somebody", "Something"];
/// Participles that do not end in "ed" or "ing".
const IRREGULAR_PARTICIPLES: [&str; 24] = [
    "Told", "Kept", "Said", "Heard", "Shown", "Found", "Held", "Sent", "Left", "Lost", "Met", "Made", "Done", "Given",
    "Known", "Seen", "Taken", "Written", "Begun", "Gone", "Broken", "Chosen", "Drawn", "Hidden",
];
/// Names of functions that say what was done, and not what is done.
const PARTICIPLE_FUNCTIONS: [&str; 11] =
    ["told", "shown", "said", "asked", "heard", "kept", "found", "met", "obeyed", "learned", "reached"];
/// Beginnings of constants that bound something and should begin with `MAX_`.
const BOUND_PREFIXES: [&str; 3] = ["MOST", "LONGEST", "LARGEST"];

/// Counts over all sources.
#[derive(Default)]
struct LanguageCounts {
    sentences: usize,
    vague_sentences: usize,
    comment_blocks: usize,
    question_openers: usize,
    participle_functions: usize,
    unconventional_bounds: usize,
    /// How often each type name is declared.
    types: HashMap<String, usize>,
}

/// One figure beside its limit.
struct Figure {
    name: &'static str,
    value: f64,
    /// `None` for a figure that is only reported.
    limit: Option<f64>,
}

/// Prints the figures.
///
/// # Errors
///
/// A figure is over its limit.
pub fn check(root: &Path) -> TaskResult {
    let mut counts = LanguageCounts::default();
    for path in product_sources(&root.join("crates"))? {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        counts.add_source(&text);
    }
    let figures = counts.figures();
    for figure in &figures {
        let limit = figure.limit.map(|limit| format!("  (at most {limit})")).unwrap_or_default();
        println!("{:<38} {:>6.2}{limit}", figure.name, figure.value);
    }
    let over: Vec<&str> = figures
        .iter()
        .filter(|figure| figure.limit.is_some_and(|limit| figure.value > limit))
        .map(|figure| figure.name)
        .collect();
    if over.is_empty() { Ok(()) } else { Err(format!("over the limit: {}", over.join(", ")).into()) }
}

/// All sources of the product: without tests, benchmarks and test doubles.
fn product_sources(crates: &Path) -> TaskResult<Vec<PathBuf>> {
    let (mut folders, mut sources) = (vec![crates.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() {
                if !["tests", "benches", "examples", "target", "testkit", "fixtures"].contains(&name) {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") && name != "tests.rs" {
                sources.push(path);
            }
        }
    }
    Ok(sources)
}

impl LanguageCounts {
    fn add_source(&mut self, text: &str) {
        let lines = without_test_items(text);
        let mut block = String::new();
        for line in lines.into_iter().chain([""]) {
            let line = line.trim();
            if let Some(comment) = line.strip_prefix("//") {
                block.push_str(comment.trim_start_matches(['/', '!']).trim());
                block.push(' ');
                continue;
            }
            self.add_comment(&std::mem::take(&mut block));
            self.add_code(line);
        }
    }

    fn add_comment(&mut self, block: &str) {
        let Some(first) = block.split_whitespace().next() else { return };
        self.comment_blocks += 1;
        self.question_openers += usize::from(OPENERS.contains(&first.trim_matches([',', '.', ':'])));
        for sentence in
            block.split_inclusive(['.', '!', '?']).filter(|sentence| sentence.split_whitespace().count() > 1)
        {
            self.sentences += 1;
            self.vague_sentences += usize::from(is_vague(sentence));
        }
    }

    fn add_code(&mut self, line: &str) {
        let code = line.split("//").next().unwrap_or_default();
        let words: Vec<&str> =
            code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
        for pair in words.windows(2) {
            match *pair {
                ["struct" | "enum" | "trait", name] if name.starts_with(char::is_uppercase) => {
                    *self.types.entry(name.to_owned()).or_default() += 1;
                }
                ["fn", name] => self.participle_functions += usize::from(PARTICIPLE_FUNCTIONS.contains(&name)),
                ["const", name] => {
                    let is_unconventional = BOUND_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
                    self.unconventional_bounds += usize::from(is_unconventional);
                }
                _ => {}
            }
        }
    }

    fn figures(&self) -> Vec<Figure> {
        let declared: usize = self.types.values().sum();
        let of_types = |is_meant: &dyn Fn(&str, usize) -> bool| {
            let meant = self.types.iter().filter(|(name, count)| is_meant(name, **count)).map(|(_, count)| count);
            percent(meant.sum(), declared)
        };
        let figure = |name, value, limit| Figure { name, value, limit };
        vec![
            figure("sentences with a vague pronoun, %", percent(self.vague_sentences, self.sentences), Some(0.5)),
            figure(
                "comments that open with a question, %",
                percent(self.question_openers, self.comment_blocks),
                Some(4.0),
            ),
            figure("types of one word, %", of_types(&|name, _| is_one_word(name)), Some(35.0)),
            figure("types named by a participle, %", of_types(&|name, _| is_participle(name)), Some(3.0)),
            figure("types that share their name, %", of_types(&|_, count| count > 1), Some(20.0)),
            figure("functions named by a participle", whole(self.participle_functions), None),
            figure("bounds not named MAX_", whole(self.unconventional_bounds), None),
        ]
    }
}

/// The lines of a source without its `#[cfg(test)]` items. Relies on rustfmt: an item ends at its own indentation.
fn without_test_items(text: &str) -> Vec<&str> {
    let mut lines = text.lines();
    let mut kept = Vec::new();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push(line);
            continue;
        }
        let indentation = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indentation}}}");
        for line in lines.by_ref() {
            let is_short = line.starts_with(indentation) && (line.ends_with(';') || line.ends_with("{}"));
            if line == end || (is_short && !line[indentation.len()..].starts_with(' ')) {
                break;
            }
        }
    }
    kept
}

fn is_vague(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    lower.contains("no one") || words.any(|word| VAGUE_PRONOUNS.contains(&word))
}

fn is_one_word(name: &str) -> bool {
    !name.as_bytes().windows(2).any(|pair| !pair[0].is_ascii_uppercase() && pair[1].is_ascii_uppercase())
}

fn is_participle(name: &str) -> bool {
    is_one_word(name) && (IRREGULAR_PARTICIPLES.contains(&name) || name.ends_with("ed") || name.ends_with("ing"))
}

#[expect(clippy::cast_precision_loss, reason = "counts of a few thousand")]
fn whole(count: usize) -> f64 {
    count as f64
}

fn percent(part: usize, all: usize) -> f64 {
    100.0 * whole(part) / whole(all.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_comments_and_names_and_skip_tests() {
        let source = "\
/// What nobody knows. It is sent.
pub struct Told;
/// A pending request.
struct PendingReply { a: u8 }
const MOST_LINES: usize = 1;
fn told() {}
#[cfg(test)]
mod tests {
    /// Whoever reads this.
    struct Kept;
}
";
        let mut counts = LanguageCounts::default();
        counts.add_source(source);
        assert_eq!((counts.sentences, counts.vague_sentences), (3, 1));
        assert_eq!((counts.comment_blocks, counts.question_openers), (2, 1));
        assert_eq!((counts.participle_functions, counts.unconventional_bounds), (1, 1));
        assert_eq!(counts.types.len(), 2, "those of tests are left out");
        let values: Vec<f64> = counts.figures().iter().map(|figure| figure.value).collect();
        assert_eq!(values[2..5], [50.0, 50.0, 0.0]);
    }
}
