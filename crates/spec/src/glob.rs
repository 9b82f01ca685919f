//! Glob patterns for names: `*` matches any run of characters, `?` matches one, a backslash escapes either.

use std::fmt;

/// A glob pattern that matches a whole string. `*`, `?` and `\` are the only special characters.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Glob {
    text: String,
    parts: Vec<GlobToken>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum GlobToken {
    One(char),
    AnyOne,
    AnyRun,
}

impl Glob {
    /// Parses a pattern. Every string is a valid pattern.
    pub fn new(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            let part = match character {
                '*' => GlobToken::AnyRun,
                '?' => GlobToken::AnyOne,
                '\\' => GlobToken::One(characters.next().unwrap_or('\\')),
                other => GlobToken::One(other),
            };
            if part != GlobToken::AnyRun || parts.last() != Some(&GlobToken::AnyRun) {
                parts.push(part);
            }
        }
        Self { text: text.to_owned(), parts }
    }

    /// Returns a pattern that matches exactly this text.
    pub fn from_literal(text: &str) -> Self {
        let mut escaped = String::with_capacity(text.len());
        for character in text.chars() {
            if matches!(character, '*' | '?' | '\\') {
                escaped.push('\\');
            }
            escaped.push(character);
        }
        Self { text: escaped, parts: text.chars().map(GlobToken::One).collect() }
    }

    /// Reports whether the pattern matches the whole text. Runs in time proportional to the product of both lengths at
    /// worst.
    pub fn matches(&self, text: &str) -> bool {
        let (mut rest, mut at) = (text.chars(), 0);
        // Backtracking point: the pattern position after the last `*` and the text it has consumed so far.
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            let before = rest.clone();
            match (self.parts.get(at), rest.next()) {
                (Some(GlobToken::AnyRun), _) => {
                    at += 1;
                    rest = before.clone();
                    retry = Some((at, before));
                }
                (Some(GlobToken::AnyOne), Some(_)) => at += 1,
                (Some(GlobToken::One(wanted)), Some(found)) if *wanted == found => at += 1,
                (None, None) => return true,
                _ => {
                    let Some((part, longer)) = &mut retry else { return false };
                    if longer.next().is_none() {
                        return false;
                    }
                    at = *part;
                    rest = longer.clone();
                }
            }
        }
    }

    /// Reports whether the pattern has no wildcards and so matches one text only.
    pub fn is_exact(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, GlobToken::One(_)))
    }

    /// Returns the number of literal characters. A pattern with more of them is more precise.
    pub fn literal_count(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, GlobToken::One(_))).count()
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_the_whole_text() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("a", "A", false),
            ("a", "ab", false),
            ("*", "", true),
            ("*", "a/b\nc", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcdf", false),
            ("*ab*ab", "abab", true),
            ("*ab*ab", "ab", false),
            ("?", "ü", true),
            ("?", "", false),
            ("??", "a", false),
            ("[a]{b,c}", "[a]{b,c}", true),
            ("[a]", "a", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("\\", "\\", true),
            ("***a**", "xxa", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn literal_glob_matches_only_its_text() {
        for text in ["", "a", "a*b?", "\\", "mcp__x__*"] {
            let glob = Glob::from_literal(text);
            assert!(glob.matches(text) && glob.is_exact() && !glob.matches("other"));
            assert_eq!(Glob::new(glob.as_str()).parts, glob.parts);
        }
        assert_eq!(Glob::new("a*b?").literal_count(), 2);
    }

    #[test]
    fn pathological_patterns_match_quickly() {
        let pattern = Glob::new(&"*a".repeat(200));
        assert!(!pattern.matches(&"a".repeat(199)));
        assert!(!Glob::new(&format!("{}b", "*a".repeat(50))).matches(&"a".repeat(20_000)));
    }
}
