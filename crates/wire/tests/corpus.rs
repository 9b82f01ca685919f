//! Everything fuzzing has ever found worth keeping, and every kind of message by hand, through the same checks.
//!
//! `fuzz/README.md` says how the corpus grows.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../fuzz/check.rs"]
mod check;

/// What the repository is willing to carry.
const MAX_CORPUS_BYTES: usize = 200 << 10;
const FEWEST_FILES: usize = 40;

/// One file at least must end in each of these.
const VERDICTS: [&str; 10] = [
    "Batch",
    "DuplicateKey",
    "Malformed",
    "NotAnObject",
    "NotUtf8",
    "Nul",
    "TooManyKeys",
    "Trailing",
    "Truncated",
    "fine",
];

#[test]
fn every_corpus_file_passes_the_checks() {
    let (mut files, mut bytes, mut seen) = (0, 0, BTreeSet::new());
    for path in corpus() {
        // Shown only when the check panics.
        println!("{}", path.display());
        let line = fs::read(&path).unwrap();
        seen.insert(match check::check(&line) {
            Ok(_) => "fine".to_owned(),
            Err(error) => format!("{:?}", error.fault).split('(').next().unwrap_or_default().to_owned(),
        });
        files += 1;
        bytes += line.len();
    }
    assert!(files >= FEWEST_FILES, "only {files} files");
    assert!(bytes <= MAX_CORPUS_BYTES, "{bytes} bytes: minimise it, see fuzz/README.md");
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), VERDICTS);
}

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/scan");
    let entries = fs::read_dir(&folder).expect("the corpus is part of the repository");
    entries.map(|entry| entry.expect("a folder that can be read").path()).collect()
}
