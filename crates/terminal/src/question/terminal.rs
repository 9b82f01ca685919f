//! Line input from the terminal: prompts on stderr, whole lines from stdin.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use tokio::sync::oneshot;

use super::DialogInput;
use crate::console::Console;

/// Maximum bytes of a line. Terminals deliver less.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Reports whether questions can be asked: stdin and stderr must both be terminals.
pub fn is_available() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Discards input typed before the question appeared.
pub fn discard_pending_input() {
    // Best effort: a failed flush does not prevent the question.
    let _ = tcflush(rustix::stdio::stdin(), QueueSelector::IFlush);
}

/// Prints a prompt and reads a line on a dedicated thread. Dropping the future stops the thread without consuming
/// input.
pub async fn read_input(console: &Console, prompt: &str) -> DialogInput {
    // Before the prompt is visible: from then on a signal may drop this future.
    let _line = PromptLine(console);
    console.write_prompt(prompt).await;
    let input = next_line(rustix::stdio::stdin()).await;
    if matches!(input, DialogInput::Line(_) | DialogInput::Garbled) {
        console.mark_prompt_line_ended();
    }
    input
}

/// Guard that disables terminal echo.
pub struct EchoGuard(Option<Termios>);

impl EchoGuard {
    pub fn disable_echo() -> Self {
        let Ok(before) = tcgetattr(rustix::stdio::stdin()) else { return Self(None) };
        let mut unseen = before.clone();
        unseen.local_modes.remove(LocalModes::ECHO);
        // Keep echoing the newline; otherwise the next output would follow the prompt on its line.
        unseen.local_modes.insert(LocalModes::ECHONL);
        let changed = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &unseen);
        Self(changed.is_ok().then_some(before))
    }
}

impl Drop for EchoGuard {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Guard for the prompt's line. Prints the missing newline if the user did not end the line.
struct PromptLine<'a>(&'a Console);

impl Drop for PromptLine<'_> {
    fn drop(&mut self) {
        self.0.end_prompt_line();
    }
}

async fn next_line(input: BorrowedFd<'static>) -> DialogInput {
    let Ok((stopped, stop)) = pipe_with(PipeFlags::CLOEXEC) else { return DialogInput::End };
    let _stop = ReaderStop(stop);
    let (line, received) = oneshot::channel();
    let read = move || {
        if let Some(read) = read_line(input, &stopped) {
            let _ = line.send(read);
        }
    };
    // Without a thread there is no input: the channel is closed.
    let _ = wharf_threads::start_thread("wharf-prompt", read);
    received.await.unwrap_or(DialogInput::End)
}

/// Stops the reader thread on drop. It writes a byte instead of closing the pipe: a child process being spawned may
/// hold a copy of the descriptor.
struct ReaderStop(OwnedFd);

impl Drop for ReaderStop {
    fn drop(&mut self) {
        // A reader that has its line has already ended.
        let _ = rustix::io::write(&self.0, b".");
    }
}

/// Reads up to the end of a line byte by byte, since the following input belongs to a later reader. Returns `None` if
/// stopped.
fn read_line(input: BorrowedFd<'_>, stopped: &OwnedFd) -> Option<DialogInput> {
    let mut line = Vec::new();
    loop {
        if wait_for_input(input, stopped.as_fd()) {
            return None;
        }
        let mut byte = [0];
        match rustix::io::read(input, &mut byte) {
            Ok(1) if byte[0] == b'\n' || line.len() == MAX_LINE_BYTES => {
                return Some(String::from_utf8(line).map_or(DialogInput::Garbled, DialogInput::Line));
            }
            Ok(1) => line.push(byte[0]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // A hung-up terminal reports a read error.
            Ok(_) | Err(_) => return Some(DialogInput::End),
        }
    }
}

/// Waits for input or for the stop signal. Returns `true` if stopped.
fn wait_for_input(input: BorrowedFd<'_>, stopped: BorrowedFd<'_>) -> bool {
    loop {
        // Polled in this order: input that arrives after the stop signal is never seen without it.
        let mut waits = [PollFd::new(&input, PollFlags::IN), PollFd::new(&stopped, PollFlags::IN)];
        match poll(&mut waits, None) {
            Ok(_) => return !waits[1].revents().is_empty(),
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;

    #[test]
    fn stopped_reader_consumes_no_input() {
        let (input, typing) = pipe().unwrap();
        let (stopped, stop) = pipe().unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| read_line(input.as_fd(), &stopped));
            drop(ReaderStop(stop));
            assert_eq!(reader.join().unwrap(), None);
        });
        rustix::io::write(&typing, b"kept\n").unwrap();
        assert_eq!(read_line(input.as_fd(), &stopped), None);
        let (running, _stop) = pipe().unwrap();
        assert_eq!(read_line(input.as_fd(), &running), Some(DialogInput::Line("kept".to_owned())));
    }

    #[test]
    fn lines_are_read_one_by_one() {
        let (input, typing) = pipe().unwrap();
        let (running, _stop) = pipe().unwrap();
        rustix::io::write(&typing, "one\n\nz\u{fc}\n\u{ff}".as_bytes()).unwrap();
        rustix::io::write(&typing, b"\xff\nrest").unwrap();
        drop(typing);
        let next = || read_line(input.as_fd(), &running).unwrap();
        for expected in ["one", "", "z\u{fc}"] {
            assert_eq!(next(), DialogInput::Line(expected.to_owned()));
        }
        assert_eq!(next(), DialogInput::Garbled);
        assert_eq!(next(), DialogInput::End);
    }

    #[tokio::test]
    async fn dropped_read_leaves_input_for_the_next() {
        let (input, typing) = pipe().unwrap();
        let input: &'static OwnedFd = Box::leak(Box::new(input));
        let input = input.as_fd();
        for _ in 0..100 {
            tokio::select! {
                biased;
                line = next_line(input) => panic!("{line:?} came from nowhere"),
                () = std::future::ready(()) => {}
            }
            rustix::io::write(&typing, b"mine\n").unwrap();
            assert_eq!(next_line(input).await, DialogInput::Line("mine".to_owned()));
        }
    }
}
