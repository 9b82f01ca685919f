//! A real terminal for a program to run on: what it shows is read, and lines and keys are typed.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// How long a program may be silent before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program on a pseudo-terminal of its own. Dropped, it takes the program with it.
pub struct Terminal {
    keyboard: File,
    child: Child,
    /// Everything shown so far.
    shown: String,
    /// How much of it has been expected already.
    expected: usize,
}

/// What a program that ended left.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    /// Everything the terminal showed, typed lines included.
    pub shown: String,
    pub stdout: String,
}

impl Terminal {
    /// Starts a command with stdin and stderr on the terminal and stdout in a pipe. It sees no variables but those
    /// the command names, and the terminal is its controlling one: Ctrl-C sends it a signal.
    pub fn run(command: &Command) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let screen = open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        // Becoming the leader of a session is for a process to do itself.
        let mut inside = Command::new("/usr/bin/setsid");
        inside.arg("--ctty").arg(command.get_program()).args(command.get_args()).env_clear();
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = command.get_current_dir() {
            inside.current_dir(directory);
        }
        let child = inside.stdin(screen.try_clone().unwrap()).stderr(screen).stdout(Stdio::piped()).spawn().unwrap();
        Self { keyboard: File::from(keyboard), child, shown: String::new(), expected: 0 }
    }

    /// Waits until a text is shown, after whatever was expected before.
    #[track_caller]
    pub fn expect(&mut self, text: &str) {
        loop {
            if let Some(at) = self.shown[self.expected..].find(text) {
                self.expected += at + text.len();
                return;
            }
            assert!(self.read_more(), "`{text}` never came: {}", self.shown);
        }
    }

    /// Types a line and Enter.
    pub fn line(&mut self, text: &str) {
        self.keyboard.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// Presses a letter while holding Ctrl.
    pub fn control(&mut self, letter: char) {
        self.keyboard.write_all(&[(letter as u8) & 0x1f]).unwrap();
    }

    /// Waits for a prompt and answers it.
    #[track_caller]
    pub fn answer(&mut self, prompt: &str, line: &str) {
        self.expect(prompt);
        self.line(line);
    }

    /// Waits for the end of the program.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        while self.read_more() {}
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let code = self.child.wait().unwrap().code();
        Ended { code, shown: std::mem::take(&mut self.shown), stdout }
    }

    /// Takes in what is shown; false once nobody holds the terminal any more.
    #[track_caller]
    fn read_more(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap();
            match poll(&mut [PollFd::new(&self.keyboard, PollFlags::IN)], Some(&left)) {
                Ok(0) => panic!("nothing comes any more: {}", self.shown),
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let mut bytes = [0; 4096];
        // A terminal without a program on it reads as an error.
        let count = self.keyboard.read(&mut bytes).unwrap_or(0);
        self.shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        count > 0
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
