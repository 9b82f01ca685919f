//! Terminal modes, restored whenever the program ends.
//!
//! The terminal stays raw between two lines: typed-ahead input is neither echoed twice nor split into lines, and Ctrl-C
//! is a key.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Signal, kill_current_process_group};
use rustix::stdio::stdin;
use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::output::{OutputStream, write_within};

/// Saved terminal attributes while the terminal is raw.
static SAVED_MODE: Mutex<Option<Termios>> = Mutex::new(None);

/// Escape sequences: enable bracketed paste; disable bracketed paste and synchronized output.
const ENABLE_PASTE: &str = "\x1b[?2004h";
const RESET_MODES: &str = "\x1b[?2004l\x1b[?2026l";

/// Puts the terminal in raw mode, except for output processing: a newline still returns the carriage.
pub fn enter_raw_mode() -> io::Result<()> {
    let before = tcgetattr(stdin())?;
    let mut raw = before.clone();
    raw.input_modes -=
        InputModes::BRKINT | InputModes::ICRNL | InputModes::INPCK | InputModes::ISTRIP | InputModes::IXON;
    raw.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN | LocalModes::ISIG;
    raw.special_codes[SpecialCodeIndex::VMIN] = 1;
    raw.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(stdin(), OptionalActions::Drain, &raw)?;
    *SAVED_MODE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    Ok(())
}

/// Restores the terminal. To be called before the program ends. Does nothing if the terminal is not in raw mode.
pub fn restore() {
    if let Some(before) = SAVED_MODE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        write_escape(RESET_MODES);
        // A failure cannot be handled: the terminal may be gone.
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &before);
    }
}

/// Suspends the process group, as Ctrl-Z does in cooked mode, until SIGCONT.
pub fn suspend() {
    restore();
    let _ = kill_current_process_group(Signal::TSTP);
    if enter_raw_mode().is_ok() {
        write_escape(ENABLE_PASTE);
    }
}

fn write_escape(text: &str) {
    write_within(OutputStream::Stdout, text.as_bytes(), Duration::ZERO);
}
