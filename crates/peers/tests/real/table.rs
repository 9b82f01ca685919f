//! The table in `evidence/interop.md` names a test for each thing it claims; here it is held to its word.

use std::collections::BTreeSet;

const TABLE: &str = include_str!("../../../../evidence/interop.md");

/// The files with tests, by how their tests are named.
const SOURCES: [(&str, &str); 16] = [
    ("", include_str!("main.rs")),
    ("asking::", include_str!("asking.rs")),
    ("caching::", include_str!("caching.rs")),
    ("catalog::", include_str!("catalog.rs")),
    ("http::asking::", include_str!("http/asking.rs")),
    ("http::plain::", include_str!("http/plain.rs")),
    ("http::sessions::", include_str!("http/sessions.rs")),
    ("http::watching::", include_str!("http/watching.rs")),
    ("http::working::", include_str!("http/working.rs")),
    ("reference::", include_str!("reference.rs")),
    ("rounds::", include_str!("rounds.rs")),
    ("sampling::", include_str!("sampling.rs")),
    ("tasks::", include_str!("tasks.rs")),
    ("undeclared::", include_str!("undeclared.rs")),
    ("watching::", include_str!("watching.rs")),
    ("working::", include_str!("working.rs")),
];

#[test]
fn interop_table_and_tests_name_each_other() {
    let written: BTreeSet<String> = SOURCES.iter().flat_map(|(module, source)| tests(module, source)).collect();
    let rows: Vec<&str> = TABLE.lines().filter(|line| line.starts_with("| ")).collect();
    let named: BTreeSet<String> = rows.iter().flat_map(|row| quoted(row)).collect();
    let only =
        |these: &BTreeSet<String>, those: &BTreeSet<String>| these.difference(those).cloned().collect::<Vec<_>>();
    assert_eq!(only(&named, &written), [""; 0], "in the table, but no test");
    assert_eq!(only(&written, &named), [""; 0], "a test, but not in the table");
    for part in TABLE.split("\n## ") {
        let rows = part.lines().filter(|line| line.starts_with("| "));
        let columns: BTreeSet<usize> = rows.map(|row| row.matches('|').count()).collect();
        assert!(columns.len() <= 1, "rows of different lengths: {columns:?}");
    }
}

/// The functions that follow the mark of a test.
fn tests(module: &str, source: &str) -> Vec<String> {
    let marked = source.split("\n#[tokio::test]\nasync fn ").skip(1);
    marked.filter_map(|rest| rest.split_once('(')).map(|(name, _)| format!("{module}{name}")).collect()
}

/// What is set in backquotes.
fn quoted(row: &str) -> Vec<String> {
    row.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
