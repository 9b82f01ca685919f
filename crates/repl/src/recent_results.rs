//! Recent tool results, for `/show`.

use std::collections::VecDeque;

use wharf_spec::EscapedText;

/// Maximum number of stored results.
const MAX_RESULTS: usize = 50;
/// Maximum bytes of all stored results.
const MAX_BYTES: usize = 2 << 20;

/// The last results of a session, each with a number that counts from 1. Old results are dropped.
#[derive(Debug, Default)]
pub struct RecentResults {
    results: VecDeque<RecentResult>,
    count: usize,
}

#[derive(Debug)]
struct RecentResult {
    number: usize,
    /// Server and tool, escaped.
    name: String,
    /// Unescaped.
    text: String,
}

impl RecentResults {
    /// Stores a result and returns its number.
    pub fn add(&mut self, name: &str, mut text: String) -> usize {
        self.count += 1;
        text.truncate(text.floor_char_boundary(MAX_BYTES));
        text.shrink_to_fit();
        self.results.push_back(RecentResult { number: self.count, name: name.to_owned(), text });
        while self.results.len() > MAX_RESULTS || self.total_bytes() > MAX_BYTES {
            self.results.pop_front();
        }
        self.count
    }

    /// Renders a result in full, or the last one. Escaped. Returns `None` if it is not stored.
    pub fn render(&self, number: Option<usize>) -> Option<String> {
        let result = match number {
            Some(number) => self.results.iter().find(|result| result.number == number)?,
            None => self.results.back()?,
        };
        let text = EscapedText::multiline(result.text.trim_end(), usize::MAX);
        Some(format!("result {} of {}:\n{text}\n", result.number, result.name))
    }

    /// Returns the numbers of the stored results, oldest and newest.
    pub fn range(&self) -> Option<(usize, usize)> {
        Some((self.results.front()?.number, self.results.back()?.number))
    }

    fn total_bytes(&self) -> usize {
        self.results.iter().map(|result| result.text.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_bounded_and_escaped() {
        let mut results = RecentResults::default();
        assert_eq!((results.render(None), results.range()), (None, None));
        assert_eq!(results.add("demo echo", "one\ntwo\u{1b}[2J\n".to_owned()), 1);
        assert_eq!(results.render(Some(1)).unwrap(), "result 1 of demo echo:\none\ntwo\\u{1b}[2J\n");
        (0..MAX_RESULTS).for_each(|_| _ = results.add("demo echo", "x".to_owned()));
        assert_eq!((results.render(Some(1)), results.range()), (None, Some((2, MAX_RESULTS + 1))));
        results.add("demo echo", "x".repeat(3 * MAX_BYTES));
        assert_eq!(results.total_bytes(), MAX_BYTES);
        assert_eq!(results.range(), Some((MAX_RESULTS + 2, MAX_RESULTS + 2)));
    }
}
