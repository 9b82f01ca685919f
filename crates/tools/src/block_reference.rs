//! One-line text references to blocks, for text-only contexts.

use std::fmt;

use crate::{Base64Text, EmbeddedContents, OutcomeBlock};
use wharf_spec::EscapedText;

/// Maximum characters of a URI or path. Generous, because a truncated URI is useless.
const MAX_URI_CHARS: usize = 2000;

/// Displays the known properties of a block, escaped and bounded.
pub(crate) struct BlockReference<'a>(pub &'a OutcomeBlock);

impl fmt::Display for BlockReference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            OutcomeBlock::Text { text, .. } => write!(f, "text, {}", LineCount(text)),
            OutcomeBlock::Image { data, mime, .. } => {
                write!(f, "image{}, {}", OptionalMime(Some(mime)), decoded_size(data))
            }
            OutcomeBlock::Audio { data, mime, .. } => {
                write!(f, "audio{}, {}", OptionalMime(Some(mime)), decoded_size(data))
            }
            OutcomeBlock::Link { uri, name, mime, description, size, .. } => {
                write!(
                    f,
                    "link{} <{}>{}",
                    OptionalName(name.as_deref()),
                    EscapedText::single_line(uri, MAX_URI_CHARS),
                    OptionalMime(mime.as_deref())
                )?;
                size.map_or(Ok(()), |size| write!(f, ", {}", ByteSize(size)))?;
                description.as_ref().map_or(Ok(()), |text| write!(f, ": {}", EscapedText::single_line(text, 200)))
            }
            OutcomeBlock::Resource { uri, mime, contents, .. } => {
                write!(
                    f,
                    "resource {}{}, ",
                    EscapedText::single_line(uri, MAX_URI_CHARS),
                    OptionalMime(mime.as_deref())
                )?;
                match contents {
                    EmbeddedContents::Text(text) => LineCount(text).fmt(f),
                    EmbeddedContents::Bytes(data) => decoded_size(data).fmt(f),
                    EmbeddedContents::Nothing => f.write_str("empty"),
                }
            }
            OutcomeBlock::File { path, mime, bytes, note } => {
                let path = path.to_string_lossy();
                let note = EscapedText::single_line(note, 500);
                write!(
                    f,
                    "file {}{}, {}: {note}",
                    EscapedText::single_line(&path, MAX_URI_CHARS),
                    OptionalMime(mime.as_deref()),
                    ByteSize(*bytes)
                )
            }
            OutcomeBlock::Other { kind, raw } => {
                write!(f, "unknown content{}, {}", OptionalName(kind.as_deref()), ByteSize(raw.as_bytes().len() as u64))
            }
        }
    }
}

/// An optional name, displayed with a leading space.
struct OptionalName<'a>(Option<&'a str>);

impl fmt::Display for OptionalName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |name| write!(f, " {}", EscapedText::single_line(name, 200)))
    }
}

/// An optional MIME type, displayed with a leading space.
struct OptionalMime<'a>(Option<&'a str>);

impl fmt::Display for OptionalMime<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .filter(|mime| !mime.is_empty())
            .map_or(Ok(()), |mime| write!(f, " {}", EscapedText::single_line(mime, 100)))
    }
}

/// The number of lines of a text.
struct LineCount<'a>(&'a str);

impl fmt::Display for LineCount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.lines().count() {
            1 => f.write_str("1 line"),
            lines => write!(f, "{lines} lines"),
        }
    }
}

fn decoded_size(data: &Base64Text) -> ByteSize {
    ByteSize(data.decoded_len() as u64)
}

/// A size in bytes, displayed in a readable unit.
struct ByteSize(u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Truncates to tenths: rounding could show 999,999 bytes as 1000.0 kB.
        let tenths = |unit: u64| (self.0 / (unit / 10)) as f64 / 10.0;
        match self.0 {
            1 => f.write_str("1 byte"),
            bytes @ 0..1_000 => write!(f, "{bytes} bytes"),
            1_000..1_000_000 => write!(f, "{:.1} kB", tenths(1_000)),
            1_000_000..1_000_000_000 => write!(f, "{:.1} MB", tenths(1_000_000)),
            _ => write!(f, "{:.1} GB", tenths(1_000_000_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_formatted_with_units() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1_000, "1.0 kB"),
            (12_345, "12.3 kB"),
            (999_999, "999.9 kB"),
            (1_000_000, "1.0 MB"),
            (u64::MAX, "18446744073.7 GB"),
        ] {
            assert_eq!(ByteSize(bytes).to_string(), shown);
        }
    }
}
