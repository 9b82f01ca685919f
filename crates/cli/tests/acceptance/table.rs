//! The page that says which test shows what, held against the tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const MODULES: [&str; 6] = ["configuring", "connecting", "logging_in", "permitting", "talking", "watching"];

/// What no single test can show.
const BY_THEMSELVES: [&str; 3] = ["all tests pass", "tests pass, unit and integration", "documentation is complete"];

#[test]
fn every_test_that_is_named_exists_and_every_test_is_named() {
    let page = std::fs::read_to_string(workspace().join("docs/acceptance.md")).unwrap();
    let (named, written) = (named(&page), written());
    assert_eq!(named.difference(&written).collect::<Vec<_>>(), Vec::<&String>::new(), "named, and not there");
    assert_eq!(written.difference(&named).collect::<Vec<_>>(), Vec::<&String>::new(), "there, and not named");
}

/// No point of a paper goes without a test.
#[test]
fn every_row_of_the_page_names_a_test() {
    let page = std::fs::read_to_string(workspace().join("docs/acceptance.md")).unwrap();
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| point") && !line.starts_with("| ---");
    let (rows, written) = (page.lines().filter(is_row), written());
    let bare: Vec<&str> = rows.clone().filter(|row| named(shown_by(row)).is_disjoint(&written)).map(point).collect();
    assert!(rows.count() >= 45, "rows are missing");
    assert_eq!(bare, BY_THEMSELVES);
}

fn point(row: &str) -> &str {
    row.split(" | ").next().unwrap().trim_start_matches("| ")
}

fn shown_by(row: &str) -> &str {
    row.rsplit(" | ").next().unwrap()
}

/// The names in backquotes that have the form `module::test`.
fn named(page: &str) -> BTreeSet<String> {
    page.split('`').skip(1).step_by(2).filter(|name| name.contains("::")).map(str::to_owned).collect()
}

fn written() -> BTreeSet<String> {
    let folder = workspace().join("crates/cli/tests/acceptance");
    let mut names = BTreeSet::new();
    for module in MODULES {
        let source = std::fs::read_to_string(folder.join(format!("{module}.rs"))).unwrap();
        let tests = source.split("#[test]\nfn ").skip(1).filter_map(|rest| rest.split('(').next());
        names.extend(tests.map(|test| format!("{module}::{test}")));
    }
    names
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
