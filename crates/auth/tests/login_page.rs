//! Every message that the table in docs/login.md quotes is one of this crate's messages.

#![allow(clippy::unwrap_used, reason = "a test panics on errors")]

use std::path::{Path, PathBuf};

/// Returns the lines of the Rust files below a directory, without unit tests.
fn source_lines(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_test = |path: &PathBuf| path.file_stem().is_some_and(|name| name == "tests");
    let mut lines = Vec::new();
    for path in entries.filter(|path| !is_test(path)) {
        match path.is_dir() {
            true => lines.extend(source_lines(&path)),
            false => {
                let text = std::fs::read_to_string(path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                lines.extend(code.lines().map(str::to_owned));
            }
        }
    }
    lines
}

/// Reports whether a line has these parts, in order.
fn has_parts(line: &str, parts: &[&str]) -> bool {
    let mut rest = line;
    parts.iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// Splits a message at the values in it: `…`, or a word in backquotes. Returns the texts and the words.
fn split_message(message: &str) -> (Vec<&str>, Vec<&str>) {
    let (texts, words): (Vec<_>, Vec<_>) = message.split('`').enumerate().partition(|(at, _)| at % 2 == 0);
    let texts = texts.into_iter().flat_map(|(_, text)| text.split('…')).map(|text| text.trim_matches([' ', ',', ':']));
    (texts.filter(|text| !text.is_empty()).collect(), words.into_iter().map(|(_, word)| word).collect())
}

#[test]
fn every_message_in_the_table_exists() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(here.join("../../docs/login.md")).unwrap();
    let (_, table) = page.split_once("| message | what to do |\n").unwrap();
    let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).skip(1).collect();
    assert!(rows.len() >= 10, "{rows:?}");
    let lines = source_lines(&here.join("src"));
    for message in rows.iter().flat_map(|row| row.split('|').nth(1).unwrap().split(';')) {
        let (texts, words) = split_message(message);
        assert!(!texts.is_empty(), "{message}");
        assert!(lines.iter().any(|line| line.contains('"') && has_parts(line, &texts)), "no message{message}");
        for word in words {
            let name = word.rsplit('.').next().unwrap();
            assert!(lines.iter().any(|line| line.contains(&format!("\"{name}\""))), "unknown `{word}` in{message}");
        }
    }
}
