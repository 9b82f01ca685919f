//! The page that says which test shows what, held against the tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The names in backquotes that have the form `file::test`, each with the words before it.
fn named(page: &str) -> BTreeSet<(String, String)> {
    let pieces: Vec<&str> = page.split('`').collect();
    let names = pieces.iter().skip(1).step_by(2).filter_map(|name| name.split_once("::"));
    names.map(|(file, test)| (file.to_owned(), test.to_owned())).collect()
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the tests of a module are.
fn source(file: &str) -> String {
    let path = match file {
        "rounds" => "crates/client/tests/rounds.rs".to_owned(),
        "table" => "crates/client/src/engine/table.rs".to_owned(),
        "cache" => "crates/client/src/cache.rs".to_owned(),
        file => format!("crates/cli/tests/it/protocol/{file}.rs"),
    };
    std::fs::read_to_string(workspace().join(&path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn protocol_page_and_tests_name_each_other() {
    let page = std::fs::read_to_string(workspace().join("evidence/protocol.md")).unwrap();
    let named = named(&page);
    for (file, test) in &named {
        assert!(source(file).contains(&format!("fn {test}(")), "`{file}::{test}` does not exist");
    }
    for file in ["asking", "keeping", "watching", "working"] {
        for line in source(file).split("#[tokio::test]\nasync fn ").skip(1) {
            let test = line.split('(').next().unwrap_or_default();
            assert!(named.contains(&(file.to_owned(), test.to_owned())), "`{file}::{test}` is not on the page");
        }
    }
}
