//! Supported file formats, and their common limits and text positions.

use std::path::Path;

use wharf_spec::UntrustedText;

use crate::tree::{ConfigNode, ParseFailure, TextPosition};
use crate::{json, toml, yaml};

/// Maximum nesting depth.
pub(crate) const MAX_DEPTH: usize = 64;

/// Maximum number of values in a file.
pub(crate) const MAX_NODES: usize = 200_000;

/// Format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// JSON with comments and trailing commas.
    Json,
    /// YAML 1.2.
    Yaml,
    /// TOML.
    Toml,
}

impl FileFormat {
    /// Returns the format for a file's extension. Unknown extensions are treated as JSON.
    pub fn from_path(path: &Path) -> Self {
        Self::from_extension(path).unwrap_or(Self::Json)
    }

    /// Returns the format for a file's extension, if it is known.
    pub(crate) fn from_extension(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "json" | "jsonc" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }
}

/// Parses a text in this format. Ignores a leading byte order mark.
///
/// # Errors
/// Returns [`ParseFailure`] if the text is not valid.
pub fn parse_text(text: &str, format: FileFormat) -> Result<ConfigNode, ParseFailure> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = SourceText::new(text);
    if let Some(offset) = text.find('\0') {
        return Err(source.unreadable(offset, "contains a NUL character, so it is probably not a text file"));
    }
    match format {
        FileFormat::Json => json::parse_json(&source),
        FileFormat::Yaml => yaml::parse_yaml(&source),
        FileFormat::Toml => toml::parse_toml(&source),
    }
}

/// Decodes UTF-8.
///
/// # Errors
/// Returns [`ParseFailure`] with the position of the first invalid byte.
pub fn decode(bytes: &[u8]) -> Result<&str, ParseFailure> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(ParseFailure { at: TextPosition::START, text: "is UTF-16, save it as UTF-8".to_owned() });
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        SourceText::new(valid).unreadable(valid.len(), "is not valid UTF-8, save it as UTF-8")
    })
}

/// A text with an index of line and column positions.
pub(crate) struct SourceText<'a> {
    pub(crate) text: &'a str,
    /// Offsets and their positions at regular intervals, starting with 0.
    marks: Vec<(usize, TextPosition)>,
}

impl<'a> SourceText<'a> {
    /// Approximate number of bytes between two index entries.
    const STRIDE: usize = 128;

    pub(crate) fn new(text: &'a str) -> Self {
        let mut marks = vec![(0, TextPosition::START)];
        let (mut at, mut next) = (TextPosition::START, Self::STRIDE);
        for (offset, character) in text.char_indices() {
            if offset >= next {
                marks.push((offset, at));
                next = offset + Self::STRIDE;
            }
            at = advance_position(at, character);
        }
        Self { text, marks }
    }

    /// Returns the position of the character at this offset, or the end of the text for a larger offset.
    pub(crate) fn position_at(&self, offset: usize) -> TextPosition {
        let mark = self.marks.partition_point(|(start, _)| *start <= offset) - 1;
        let (start, at) = self.marks[mark];
        let between = self.text[start..].char_indices().take_while(|(n, _)| start + n < offset);
        between.fold(at, |at, (_, character)| advance_position(at, character))
    }

    /// Creates an error at this offset. The text is escaped and shortened.
    pub(crate) fn unreadable(&self, offset: usize, text: impl AsRef<str>) -> ParseFailure {
        ParseFailure { at: self.position_at(offset), text: UntrustedText::new(text.as_ref()).truncate(300).to_string() }
    }
}

/// Returns the position after a character.
fn advance_position(at: TextPosition, character: char) -> TextPosition {
    match character {
        '\n' => TextPosition { line: at.line.saturating_add(1), column: 1 },
        _ => TextPosition { column: at.column.saturating_add(1), ..at },
    }
}

/// Limits the number and depth of values, to bound the memory for a file.
#[derive(Debug, Default)]
pub(crate) struct NodeBudget {
    nodes: usize,
}

impl NodeBudget {
    /// Counts a value at this depth. Returns a description of the limit if it is exceeded.
    pub(crate) fn charge_node(&mut self, depth: usize) -> Result<(), String> {
        self.nodes += 1;
        if depth > MAX_DEPTH {
            return Err(format!("is nested more than {MAX_DEPTH} levels deep"));
        }
        if self.nodes > MAX_NODES {
            return Err(format!("contains more than {MAX_NODES} values"));
        }
        Ok(())
    }
}

/// Converts an error text of a library to a lower-case fragment.
pub(crate) fn lowercase_fragment(text: &str) -> String {
    let mut characters = text.trim_end_matches('.').chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_detected_by_extension() {
        for (path, format) in [
            ("a/b.json", FileFormat::Json),
            ("b.jsonc", FileFormat::Json),
            (".mcp", FileFormat::Json),
            ("b.YAML", FileFormat::Yaml),
            ("b.yml", FileFormat::Yaml),
            ("b.toml", FileFormat::Toml),
            ("toml", FileFormat::Json),
        ] {
            assert_eq!(FileFormat::from_path(Path::new(path)), format, "{path}");
        }
    }

    #[test]
    fn position_is_found_at_any_offset() {
        let text = "ä\n".repeat(600) + &"ü".repeat(2000);
        let source = SourceText::new(&text);
        let mut expected = TextPosition::START;
        for (offset, character) in text.char_indices() {
            assert_eq!(source.position_at(offset), expected, "{offset}");
            expected = advance_position(expected, character);
        }
        assert_eq!(source.position_at(text.len()), expected);
        assert_eq!(source.position_at(usize::MAX), expected);
    }

    #[test]
    fn non_utf8_and_nul_are_rejected() {
        check_bytes(b"\xff\xfe{\0}\0", "1:1: is UTF-16, save it as UTF-8");
        check_bytes(b"\xfe\xff\0{\0}", "1:1: is UTF-16, save it as UTF-8");
        check_bytes(b"{\n \xc3\x28", "2:2: is not valid UTF-8, save it as UTF-8");
        for format in [FileFormat::Json, FileFormat::Yaml, FileFormat::Toml] {
            let error = parse_text("\u{feff}\n\0", format).unwrap_err();
            assert_eq!(
                format!("{}: {error}", error.at),
                "2:1: contains a NUL character, so it is probably not a text file"
            );
        }
    }

    fn check_bytes(bytes: &[u8], expected: &str) {
        let error = decode(bytes).unwrap_err();
        assert_eq!(format!("{}: {error}", error.at), expected);
    }
}
