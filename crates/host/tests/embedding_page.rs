//! The sample in docs/embedding.md is a part of an example that compiles, and the methods it names exist.

#![allow(clippy::unwrap_used, reason = "a test panics on errors")]

use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(repository().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn every_rust_sample_is_a_part_of_the_example_named_above_it() {
    let page = read("docs/embedding.md");
    let mut sections = page.split("```rust\n");
    let mut before = sections.next().unwrap();
    let mut samples = 0;
    for section in sections {
        let (sample, after) = section.split_once("```\n").unwrap();
        let example = before.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")).last();
        let example = example.unwrap_or_else(|| panic!("no example above {sample}"));
        let text = read(&format!("crates/host/examples/{example}"));
        assert!(text.contains(sample), "docs/embedding.md differs from {example}:\n{sample}");
        (before, samples) = (after, samples + 1);
    }
    assert!(samples > 0, "docs/embedding.md has no sample");
}

#[test]
fn every_builder_method_in_the_table_exists() {
    let (page, builder) = (read("docs/embedding.md"), read("crates/host/src/builder.rs"));
    let (_, table) = page.split_once("| method | sets |\n").unwrap();
    let rows = table.lines().map(str::trim).take_while(|line| line.starts_with('|')).skip(1);
    let names: Vec<&str> = rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)).collect();
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        let is_there = builder.contains(&format!("pub fn {name}(")) || builder.contains(&format!("pub fn {name}<"));
        assert!(is_there, "HostBuilder has no method `{name}`");
    }
}

/// Returns the text of the Rust files below a directory.
fn sources(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false => std::fs::read_to_string(path).unwrap(),
    };
    entries.map(text).collect()
}

#[test]
fn every_function_it_names_exists() {
    let page = read("docs/embedding.md");
    let crates = ["guard", "host", "client", "policy", "wire", "spec", "tools"];
    let text: String = crates.map(|name| sources(&repository().join("crates").join(name).join("src"))).concat();
    let prose: String = page.split("```").step_by(2).collect();
    let calls = prose.split('`').skip(1).step_by(2).filter_map(|word| word.split_once('('));
    let names: Vec<&str> = calls.map(|(path, _)| path.rsplit([':', '.']).next().unwrap()).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let is_there = text.contains(&format!("fn {name}(")) || text.contains(&format!("fn {name}<"));
        assert!(is_there, "docs/embedding.md names `{name}()`, which does not exist");
    }
}
