//! The benchmark page, with one part per benchmark.

use std::fs;

use crate::run::{TaskResult, root, say};

/// Replaces the part with the same title, or appends it, and prints it.
pub fn write_part(part: &str) -> TaskResult {
    let file = root().join("evidence/benchmarks.md");
    let page = fs::read_to_string(&file).unwrap_or_default();
    fs::write(file, replace_part(&page, part))?;
    print!("{part}");
    say!("wrote evidence/benchmarks.md");
    Ok(())
}

fn replace_part(page: &str, part: &str) -> String {
    let mut parts = split_parts(page);
    let title = |part: &str| part.lines().next().map(str::to_owned);
    match parts.iter().position(|old| title(old) == title(part)) {
        Some(place) => parts[place] = part,
        None => parts.push(part),
    }
    let trimmed: Vec<&str> = parts.into_iter().map(str::trim_end).collect();
    trimmed.join("\n\n") + "\n"
}

/// Splits the page before each title.
fn split_parts(page: &str) -> Vec<&str> {
    let titles = page.match_indices("\n# ").map(|(at, _)| at + 1);
    let cuts: Vec<usize> = std::iter::once(0).chain(titles).chain([page.len()]).collect();
    let parts = cuts.windows(2).map(|ends| &page[ends[0]..ends[1]]);
    parts.filter(|part| !part.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_with_the_same_title_is_replaced() {
        for (page, part, expected) in [
            ("", "# a\n\nnew\n", "# a\n\nnew\n"),
            ("# a\n\nold\n\n# b\n\n## a\n", "# a\n\nnew\n", "# a\n\nnew\n\n# b\n\n## a\n"),
            ("# a\n\nold\n\n# b\nold\n", "# b\n\nnew\n", "# a\n\nold\n\n# b\n\nnew\n"),
            ("# a\n\nold\n", "# b\n\nnew\n", "# a\n\nold\n\n# b\n\nnew\n"),
        ] {
            assert_eq!(replace_part(page, part), expected, "{page:?}");
        }
    }
}
