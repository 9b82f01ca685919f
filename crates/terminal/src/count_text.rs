//! Formats counts.

use std::fmt;

/// Formats a number and its noun, with a plural `s`: `1 tool`, `3 tools`.
pub struct CountText<N>(pub N, pub &'static str);

impl<N: fmt::Display + PartialEq + From<u8>> fmt::Display for CountText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == N::from(1) { "" } else { "s" };
        write!(f, "{} {}{plural}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        for (number, expected) in [(0_u64, "0 tools"), (1, "1 tool"), (2, "2 tools")] {
            assert_eq!(CountText(number, "tool").to_string(), expected);
        }
    }
}
