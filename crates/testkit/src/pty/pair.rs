//! The two ends of a pseudo-terminal.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open as open_file};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Opens both ends: the controlling side and the program's side.
pub fn open(rows: u16, columns: u16) -> (File, OwnedFd) {
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal is left");
    grantpt(&keyboard).expect("it is ours");
    unlockpt(&keyboard).expect("it is ours");
    let keyboard = File::from(keyboard);
    resize(&keyboard, rows, columns);
    let name = ptsname(&keyboard, Vec::new()).expect("a terminal has a name");
    let screen = open_file(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
    (keyboard, screen.expect("it was unlocked"))
}

/// Sets the size; the foreground process group receives SIGWINCH.
pub fn resize(keyboard: &File, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(keyboard, size).expect("a terminal has a size");
}
