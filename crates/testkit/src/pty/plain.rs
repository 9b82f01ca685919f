//! Terminal output without control sequences.

/// The text of a byte stream, independent of its division into pieces.
#[derive(Default)]
pub struct Plain {
    text: Vec<u8>,
    within: Within,
}

/// Parser state: the context of the next byte.
#[derive(Clone, Copy, Default)]
enum Within {
    #[default]
    Text,
    /// After an escape.
    Escape,
    /// After `ESC (` and similar, which one more byte ends.
    Charset,
    /// After `ESC [`, up to a letter.
    Control,
    /// After `ESC ]` and similar, up to a bell or `ESC \`.
    Command,
    /// After an escape in a command.
    CommandEscape,
}

impl Plain {
    /// Parses more of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.within = self.take(*byte);
        }
    }

    /// Returns the text so far, without carriage returns, bells and backspaces.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn take(&mut self, byte: u8) -> Within {
        match (self.within, byte) {
            (Within::Text | Within::Control, 0x1b) => Within::Escape,
            (Within::Text, b'\r' | 0x07 | 0x08) => Within::Text,
            (Within::Text, text) => {
                self.text.push(text);
                Within::Text
            }
            (Within::Escape, b'[') => Within::Control,
            (Within::Escape, b']' | b'P' | b'X' | b'^' | b'_') => Within::Command,
            (Within::Escape, b' '..=b'/') => Within::Charset,
            (Within::Control, 0x40..=0x7e) => Within::Text,
            (Within::Control, _) => Within::Control,
            (Within::Command, 0x07) | (Within::CommandEscape, b'\\') => Within::Text,
            (Within::Command | Within::CommandEscape, 0x1b) => Within::CommandEscape,
            (Within::Command | Within::CommandEscape, _) => Within::Command,
            (Within::Escape | Within::Charset, _) => Within::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Plain;

    #[test]
    fn only_what_is_text_is_kept() {
        for (written, text) in [
            ("plain", "plain"),
            ("two\r\nlines", "two\nlines"),
            ("\x1b[1;31mred\x1b[0m!", "red!"),
            ("\x1b[?2004h> \x1b[K", "> "),
            ("\x1b]0;a title\x07after", "after"),
            ("\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]0;not [ended\x1bx\x07after", "after"),
            ("\x1b(Bletters\x1b7\x1b=", "letters"),
            ("Käse \x1b[2mund Brot", "Käse und Brot"),
        ] {
            check(written, text);
        }
    }

    /// Checks the input as a whole, and byte by byte.
    fn check(written: &str, text: &str) {
        for size in [written.len(), 1] {
            let mut plain = Plain::default();
            written.as_bytes().chunks(size).for_each(|piece| plain.push(piece));
            assert_eq!(String::from_utf8_lossy(plain.text()), text, "{written:?} by {size}");
        }
    }
}
