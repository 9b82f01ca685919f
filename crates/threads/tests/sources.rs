//! The product starts threads only through this crate.

#![allow(clippy::unwrap_used, reason = "a test panics on errors")]

use std::fs;
use std::path::{Path, PathBuf};

/// Crates that are not part of the product, or have no dependency on it: the demo server starts its own threads.
const EXCEPT: [&str; 6] = ["conformance", "demo", "peers", "testkit", "threads", "xtask"];
/// Calls that panic or hang at the process limit.
const FORBIDDEN: [&str; 6] = [
    "thread::spawn(",
    "thread::Builder",
    "spawn_blocking(",
    "tokio::net::lookup_host",
    "tokio::fs::",
    "new_multi_thread",
];

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if !path.ends_with("tests") => files.extend(sources(&path)),
            false if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") => files.push(path),
            _ => {}
        }
    }
    files
}

#[test]
fn threads_are_started_in_one_crate() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let directory = entry.unwrap().path();
        let source = directory.join("src");
        if EXCEPT.iter().any(|name| directory.ends_with(name)) || !source.is_dir() {
            continue;
        }
        for file in sources(&source) {
            let text = fs::read_to_string(&file).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            let lines = text.lines().filter(is_code).filter(|line| FORBIDDEN.iter().any(|call| line.contains(call)));
            found.extend(lines.map(|line| format!("{}: {}", file.display(), line.trim())));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
