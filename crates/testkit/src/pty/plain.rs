//! Terminal output without control sequences.

/// The text of a byte stream, independent of its division into pieces.
#[derive(Default)]
pub struct Plain {
    text: Vec<u8>,
    within: EscapeState,
}

/// Parser state: the context of the next byte.
#[derive(Clone, Copy, Default)]
enum EscapeState {
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
            self.within = self.next_state(*byte);
        }
    }

    /// Returns the text so far, without carriage returns, bells and backspaces.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn next_state(&mut self, byte: u8) -> EscapeState {
        match (self.within, byte) {
            (EscapeState::Text | EscapeState::Control, 0x1b) => EscapeState::Escape,
            (EscapeState::Text, b'\r' | 0x07 | 0x08) => EscapeState::Text,
            (EscapeState::Text, text) => {
                self.text.push(text);
                EscapeState::Text
            }
            (EscapeState::Escape, b'[') => EscapeState::Control,
            (EscapeState::Escape, b']' | b'P' | b'X' | b'^' | b'_') => EscapeState::Command,
            (EscapeState::Escape, b' '..=b'/') => EscapeState::Charset,
            (EscapeState::Control, 0x40..=0x7e) => EscapeState::Text,
            (EscapeState::Control, _) => EscapeState::Control,
            (EscapeState::Command, 0x07) | (EscapeState::CommandEscape, b'\\') => EscapeState::Text,
            (EscapeState::Command | EscapeState::CommandEscape, 0x1b) => EscapeState::CommandEscape,
            (EscapeState::Command | EscapeState::CommandEscape, _) => EscapeState::Command,
            (EscapeState::Escape | EscapeState::Charset, _) => EscapeState::Text,
        }
    }
}
