//! Every test that docs/security.md names exists where it says.

use std::path::Path;

/// The names in backquotes of a text.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn tests_named_in_security_page_exist() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(here.join("../../docs/security.md")).unwrap();
    let mut found = 0;
    let is_row = |line: &&str| line.starts_with("| ") && line.contains(".rs`");
    for row in page.lines().filter(is_row) {
        let shown = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let mut file = None;
        for name in quoted(shown) {
            if name.ends_with(".rs") {
                file = Some(std::fs::read_to_string(here.join(name)).unwrap_or_else(|_| panic!("no file {name}")));
                continue;
            }
            let text = file.as_ref().unwrap_or_else(|| panic!("no file before {name}"));
            assert!(text.contains(&format!("fn {name}(")), "no test {name}, in: {row}");
            found += 1;
        }
    }
    assert!(found > 30, "only {found} tests are named");
}
