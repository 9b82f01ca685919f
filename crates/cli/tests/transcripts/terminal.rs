//! A terminal of 120 columns for a command to run on, and somebody who types.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

const SIZE: Winsize = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };

/// How long a command may be silent before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command to its end; gives everything that was shown, and its exit code. Each of what is typed waits until the
/// words before it are shown.
pub fn play(mut command: Command, typed: &[(&str, &str)]) -> (String, Option<i32>) {
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    tcsetwinsize(&keyboard, SIZE).unwrap();
    let name = ptsname(&keyboard, Vec::new()).unwrap();
    let screen = open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    command.stdin(screen.try_clone().unwrap()).stdout(screen.try_clone().unwrap()).stderr(screen);
    let mut child = command.spawn().unwrap();
    // It holds the screen as well, and only when nobody does is everything read.
    drop(command);
    let shown = converse(File::from(keyboard), typed);
    (shown, child.wait().unwrap().code())
}

fn converse(mut keyboard: File, typed: &[(&str, &str)]) -> String {
    let mut bytes = Vec::new();
    let mut typed = typed.iter().peekable();
    let mut seen = 0;
    while read_more(&mut keyboard, &mut bytes) {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        while let Some((words, answer)) = typed.peek()
            && let Some(at) = shown.get(seen..).and_then(|new| new.find(words))
        {
            seen += at + words.len();
            keyboard.write_all(format!("{answer}\n").as_bytes()).unwrap();
            typed.next();
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Takes in what is shown; false once nobody holds the terminal any more.
fn read_more(keyboard: &mut File, bytes: &mut Vec<u8>) -> bool {
    let patience = Timespec::try_from(PATIENCE).unwrap();
    let ready = poll(&mut [PollFd::new(&*keyboard, PollFlags::IN)], Some(&patience)).unwrap();
    assert!(ready > 0, "nothing comes any more: {}", String::from_utf8_lossy(bytes));
    let mut more = [0; 4096];
    // A terminal without a program on it reads as an error.
    let count = keyboard.read(&mut more).unwrap_or(0);
    bytes.extend_from_slice(&more[..count]);
    count > 0
}
