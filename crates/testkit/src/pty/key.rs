//! Non-character keys, as sent by a modern terminal.

/// A non-character key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Enter,
    Tab,
    BackTab,
    Escape,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
}

impl Key {
    /// Returns the byte sequence of the key.
    pub fn sequence(self) -> &'static str {
        match self {
            Key::Enter => "\r",
            Key::Tab => "\t",
            Key::BackTab => "\x1b[Z",
            Key::Escape => "\x1b",
            Key::Backspace => "\x7f",
            Key::Delete => "\x1b[3~",
            Key::Up => "\x1b[A",
            Key::Down => "\x1b[B",
            Key::Right => "\x1b[C",
            Key::Left => "\x1b[D",
            Key::Home => "\x1b[H",
            Key::End => "\x1b[F",
            Key::PageUp => "\x1b[5~",
            Key::PageDown => "\x1b[6~",
        }
    }
}
