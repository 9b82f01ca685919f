//! Everything fuzzing has ever found worth keeping, and every kind of stream by hand, through the same checks.
//!
//! `fuzz/README.md` says how the corpus grows.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../fuzz/check.rs"]
mod check;

/// What the repository is willing to carry.
const MAX_CORPUS_BYTES: usize = 50 << 10;
const FEWEST_FILES: usize = 20;

#[test]
fn every_corpus_file_passes_the_checks() {
    let (mut files, mut bytes, mut events, mut retries, mut ids) = (0, 0, 0, 0, 0);
    for path in corpus() {
        // Shown only when the check panics.
        println!("{}", path.display());
        let stream = fs::read(&path).unwrap();
        let reading = check::check(&stream);
        events += reading.events.len();
        retries += usize::from(reading.retry.is_some());
        ids += usize::from(reading.last_id.is_some());
        files += 1;
        bytes += stream.len();
    }
    assert!(files >= FEWEST_FILES, "only {files} files");
    assert!(bytes <= MAX_CORPUS_BYTES, "{bytes} bytes: minimise it, see fuzz/README.md");
    assert!(events > files && retries > 0 && ids > 0, "{events} events, {retries} delays, {ids} ids: too dull");
}

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/sse");
    let entries = fs::read_dir(&folder).expect("the corpus is part of the repository");
    entries.map(|entry| entry.expect("a folder that can be read").path()).collect()
}
