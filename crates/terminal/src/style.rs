//! Text styles. Colour is never the only signal. The console decides whether styles are emitted.

use std::fmt::{self, Display};

use anstyle::{AnsiColor, Style};

pub const HEADING: Style = Style::new().bold();
pub const NAME: Style = AnsiColor::Cyan.on_default();
pub const QUIET: Style = Style::new().dimmed();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// A text with a style.
pub struct StyledText<T>(Style, T);

/// Applies a style to an escaped text.
pub fn paint<T: Display>(style: Style, text: T) -> StyledText<T> {
    StyledText(style, text)
}

impl<T: Display> Display for StyledText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{:#}", self.0, self.1, self.0)
    }
}
