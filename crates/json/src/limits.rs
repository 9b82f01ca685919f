//! Structural limits on JSON text that is about to be decoded.

use memchr::memchr2;

/// Structural limits for decoding. Text that is only forwarded is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    /// Maximum nesting depth of arrays and objects.
    pub depth: usize,
    /// Maximum number of values. Every scalar, array and object is one value.
    pub nodes: usize,
}

impl Default for JsonLimits {
    fn default() -> Self {
        Self { depth: 64, nodes: 100_000 }
    }
}

/// Error: a text exceeds one of its [`JsonLimits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonLimitExceeded {
    /// The text nests deeper than this limit.
    Depth(usize),
    /// The text has more values than this limit.
    Nodes(usize),
}

impl std::fmt::Display for JsonLimitExceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Depth(limit) => write!(f, "nested deeper than {limit} levels"),
            Self::Nodes(limit) => write!(f, "more than {limit} values"),
        }
    }
}

impl std::error::Error for JsonLimitExceeded {}

impl JsonLimits {
    /// Checks a JSON text against the limits without parsing it. Uses constant memory and stops at the first excess.
    ///
    /// The node count is one for the text, plus one per opening bracket and one per comma. For valid JSON that is at
    /// least the number of values, and at most one more per array or object.
    ///
    /// # Errors
    ///
    /// Returns the first limit that the text exceeds.
    pub fn check(&self, text: &[u8]) -> Result<(), JsonLimitExceeded> {
        let (mut depth, mut nodes, mut at) = (0usize, 1usize, 0usize);
        if nodes > self.nodes {
            return Err(JsonLimitExceeded::Nodes(self.nodes));
        }
        while let Some(&byte) = text.get(at) {
            at += 1;
            match byte {
                b'"' => at = string_end(text, at),
                b'{' | b'[' => {
                    depth += 1;
                    nodes += 1;
                    if depth > self.depth {
                        return Err(JsonLimitExceeded::Depth(self.depth));
                    }
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b',' => nodes += 1,
                _ => continue,
            }
            if nodes > self.nodes {
                return Err(JsonLimitExceeded::Nodes(self.nodes));
            }
        }
        Ok(())
    }
}

/// Returns the offset after the quote that closes the string whose contents begin at `at`, or the end of the text.
fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        if text[at + found] == b'"' {
            return at + found + 1;
        }
        at += found + 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, depth: usize, nodes: usize) -> Result<(), JsonLimitExceeded> {
        JsonLimits { depth, nodes }.check(text.as_bytes())
    }

    #[test]
    fn depth_and_node_limits_are_exact() {
        for (text, depth, nodes, expected) in [
            ("1", 0, 1, Ok(())),
            ("1", 0, 0, Err(JsonLimitExceeded::Nodes(0))),
            ("[[1]]", 2, 9, Ok(())),
            ("[[1]]", 1, 9, Err(JsonLimitExceeded::Depth(1))),
            ("[1,2,3]", 1, 4, Ok(())),
            ("[1,2,3]", 1, 3, Err(JsonLimitExceeded::Nodes(3))),
            (r#"{"[[[[\"{{{":"]]]"}"#, 1, 2, Ok(())),
        ] {
            assert_eq!(check(text, depth, nodes), expected, "{text}");
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(check(&deep, 64, usize::MAX), Err(JsonLimitExceeded::Depth(64)));
    }
}
