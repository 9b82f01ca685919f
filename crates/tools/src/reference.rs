//! One-line text references to blocks, for text-only contexts.

use std::fmt;

use crate::{Base64Text, Block, Contents};
use wharf_spec::Shown;

/// Maximum characters of a URI or path. Generous, because a truncated URI is useless.
const LONGEST_URI: usize = 2000;

/// Displays the known properties of a block, escaped and bounded.
pub(crate) struct Reference<'a>(pub &'a Block);

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Block::Text { text, .. } => write!(f, "text, {}", Lines(text)),
            Block::Image { data, mime, .. } => write!(f, "image{}, {}", Kind(Some(mime)), size(data)),
            Block::Audio { data, mime, .. } => write!(f, "audio{}, {}", Kind(Some(mime)), size(data)),
            Block::Link { uri, name, mime, description, size, .. } => {
                write!(
                    f,
                    "link{} <{}>{}",
                    Word(name.as_deref()),
                    Shown::line(uri, LONGEST_URI),
                    Kind(mime.as_deref())
                )?;
                size.map_or(Ok(()), |size| write!(f, ", {}", Size(size)))?;
                description.as_ref().map_or(Ok(()), |text| write!(f, ": {}", Shown::line(text, 200)))
            }
            Block::Resource { uri, mime, contents, .. } => {
                write!(f, "resource {}{}, ", Shown::line(uri, LONGEST_URI), Kind(mime.as_deref()))?;
                match contents {
                    Contents::Text(text) => Lines(text).fmt(f),
                    Contents::Bytes(data) => size(data).fmt(f),
                    Contents::Nothing => f.write_str("nothing in it"),
                }
            }
            Block::File { path, mime, bytes, note } => {
                let path = path.to_string_lossy();
                let note = Shown::line(note, 500);
                write!(f, "file {}{}, {}: {note}", Shown::line(&path, LONGEST_URI), Kind(mime.as_deref()), Size(*bytes))
            }
            Block::Other { kind, raw } => {
                write!(f, "unknown content{}, {}", Word(kind.as_deref()), Size(raw.as_bytes().len() as u64))
            }
        }
    }
}

/// An optional name, displayed with a leading space.
struct Word<'a>(Option<&'a str>);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |name| write!(f, " {}", Shown::line(name, 200)))
    }
}

/// An optional MIME type, displayed with a leading space.
struct Kind<'a>(Option<&'a str>);

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.filter(|mime| !mime.is_empty()).map_or(Ok(()), |mime| write!(f, " {}", Shown::line(mime, 100)))
    }
}

/// The number of lines of a text.
struct Lines<'a>(&'a str);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.lines().count() {
            1 => f.write_str("1 line"),
            lines => write!(f, "{lines} lines"),
        }
    }
}

fn size(data: &Base64Text) -> Size {
    Size(data.decoded_len() as u64)
}

/// A size in bytes, displayed in a readable unit.
struct Size(u64);

impl fmt::Display for Size {
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
    fn sizes_are_read_at_a_glance() {
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
            assert_eq!(Size(bytes).to_string(), shown);
        }
    }
}
