//! How the terminal was before, and that it is so again however the program ends.
//!
//! Between two lines it stays raw: what is typed ahead is neither shown twice nor cut into lines, and Ctrl-C is a key.

use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Signal, kill_current_process_group};
use rustix::stdio::stdin;
use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

/// How it was, while it is not so.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Whole pastes are told from typing by this, and what is drawn is shown at once.
const PASTES_ON: &str = "\x1b[?2004h";
const ALL_OFF: &str = "\x1b[?2004l\x1b[?2026l";

/// Makes the terminal raw, but for its output: a line end still begins a line.
pub fn take() -> io::Result<()> {
    let before = tcgetattr(stdin())?;
    let mut raw = before.clone();
    raw.input_modes -=
        InputModes::BRKINT | InputModes::ICRNL | InputModes::INPCK | InputModes::ISTRIP | InputModes::IXON;
    raw.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN | LocalModes::ISIG;
    raw.special_codes[SpecialCodeIndex::VMIN] = 1;
    raw.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(stdin(), OptionalActions::Drain, &raw)?;
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    Ok(())
}

/// Makes the terminal what it was before a line was edited on it. For whoever is about to end the program; does nothing
/// where there is nothing to give back.
pub fn give_back() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        say(ALL_OFF);
        // There is nothing to be done about a terminal that is gone.
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &before);
    }
}

/// Stops the program, as Ctrl-Z does elsewhere, until somebody lets it go on.
pub fn suspend() {
    give_back();
    let _ = kill_current_process_group(Signal::TSTP);
    if take().is_ok() {
        say(PASTES_ON);
    }
}

fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
