//! The page that says which test shows what, held against the tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The modules whose tests show nothing of the papers.
const ASIDE: [&str; 4] = ["agent_home", "others", "screens", "table"];

/// What no single test can show.
const BY_THEMSELVES: [&str; 3] = ["all tests pass", "tests pass, unit and integration", "documentation is complete"];

#[test]
fn acceptance_page_and_tests_name_each_other() {
    let page = std::fs::read_to_string(workspace().join("evidence/acceptance.md")).unwrap();
    let (named, written) = (named(&page), written());
    assert_eq!(named.difference(&written).collect::<Vec<_>>(), Vec::<&String>::new(), "named, and not there");
    assert_eq!(written.difference(&named).collect::<Vec<_>>(), Vec::<&String>::new(), "there, and not named");
}

/// No point of a paper goes without a test.
#[test]
fn every_acceptance_row_names_a_test() {
    let page = std::fs::read_to_string(workspace().join("evidence/acceptance.md")).unwrap();
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| point") && !line.starts_with("| ---");
    let (rows, written) = (page.lines().filter(is_row), written());
    let bare: Vec<&str> = rows.clone().filter(|row| named(shown_by(row)).is_disjoint(&written)).map(point).collect();
    assert!(rows.count() >= 45, "rows are missing");
    assert_eq!(bare, BY_THEMSELVES);
}

#[test]
fn tests_are_recognised_among_other_attributes() {
    let source = "#[test]\nfn plain() {}\n#[cfg(test)]\nfn none() {}\n\
                  #[tokio::test(start_paused = true)]\n#[expect(dead_code)]\nasync fn waiting() {}\n";
    assert_eq!(tests(source), ["plain", "waiting"]);
}

#[test]
#[should_panic(expected = "one that is not run shows nothing")]
fn ignored_test_panics() {
    tests("#[ignore = \"slow\"]\n#[test]\nfn plain() {}\n");
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
    let folder = workspace().join("crates/cli/tests/it");
    let source = |module: &str| std::fs::read_to_string(folder.join(format!("{module}.rs"))).unwrap();
    let main = source("acceptance");
    let modules = main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    let mut names = BTreeSet::new();
    for module in modules.filter(|module| !ASIDE.contains(module)) {
        names.extend(tests(&source(&format!("acceptance/{module}"))).iter().map(|test| format!("{module}::{test}")));
    }
    names
}

/// The names of the functions that an attribute makes tests.
fn tests(source: &str) -> Vec<&str> {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let is_ignored = lines.iter().any(|line| line.starts_with("#[") && line.contains("ignore"));
    assert!(!is_ignored, "one that is not run shows nothing");
    let is_test = |line: &str| attribute(line).is_some_and(|path| path.ends_with("test"));
    let begun = lines.iter().enumerate().filter(|(_, line)| is_test(line));
    begun.filter_map(|(at, _)| lines[at..].iter().copied().find_map(name)).collect()
}

fn name(line: &str) -> Option<&str> {
    line.split_once("fn ")?.1.split('(').next()
}

/// The path of an attribute: `tokio::test` of `#[tokio::test(start_paused = true)]`.
fn attribute(line: &str) -> Option<&str> {
    line.strip_prefix("#[")?.split(['(', ']']).next()
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
