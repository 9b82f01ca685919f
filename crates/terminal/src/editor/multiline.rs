//! Continuation lines: after a trailing `\\`, or while a code fence is open.

/// Reports whether the text is incomplete.
pub fn is_incomplete(text: &str) -> bool {
    text.ends_with('\\') || text.lines().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1
}

/// Replaces each escaped line break with a plain one.
pub fn join_lines(text: &str) -> String {
    text.replace("\\\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_complete_or_incomplete() {
        for (text, expected) in [
            ("one", false),
            ("one\\", true),
            ("one\\\ntwo", false),
            ("```", true),
            ("look:\n  ```rust\nlet x;", true),
            ("```\ncode\n```", false),
            ("```\ncode\n```\nand ```", false),
            ("", false),
        ] {
            assert_eq!(is_incomplete(text), expected, "{text}");
        }
        assert_eq!(join_lines("one\\\ntwo\nthree \\ four"), "one\ntwo\nthree \\ four");
    }
}
