//! Input from a pipe or from a terminal without editing support.

use std::io::{self, BufRead, Read as _};

use super::{EditorInput, LineStart, ReaderChannels};
use crate::console::Console;

/// Maximum bytes of a line. The rest is dropped.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Sends each line up to the end of input. A blocking read cannot be interrupted, so this thread is never joined.
pub fn read_pipe(console: &Console, channels: &ReaderChannels) {
    let mut input = io::stdin().lock();
    while let Ok(Some(line)) = next_line(&mut input) {
        if line.is_cut {
            console.warn("an input line is longer than 1 MiB and was truncated");
        }
        if !channels.send_and_wait(EditorInput::Line { text: line.text, began: LineStart::After }) {
            return;
        }
    }
    channels.send_and_wait(EditorInput::End);
}

#[derive(Debug, PartialEq, Eq)]
struct PipedLine {
    text: String,
    is_cut: bool,
}

fn next_line(input: &mut impl BufRead) -> io::Result<Option<PipedLine>> {
    let mut bytes = Vec::new();
    if input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    let is_cut = !bytes.ends_with(b"\n") && skip_line(input)? > 0;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Some(PipedLine { text: text.strip_suffix('\r').unwrap_or(text).to_owned(), is_cut }))
}

/// Skips the rest of a line and returns its length in bytes.
fn skip_line(input: &mut impl BufRead) -> io::Result<usize> {
    let mut skipped = 0;
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(buffer.len(), |end| end + 1);
        input.consume(count);
        skipped += count;
        if end.is_some() || count == 0 {
            return Ok(skipped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlong_lines_are_truncated() {
        let long = "x".repeat(MAX_LINE_BYTES as usize);
        let text = format!("one\r\n\n{long}{long}\nz\u{fc}\n{long}");
        let mut input = io::BufReader::with_capacity(100, text.as_bytes());
        let mut next = || next_line(&mut input).unwrap().map(|line| (line.text, line.is_cut));
        for (text, is_cut) in [("one", false), ("", false), (long.as_str(), true), ("z\u{fc}", false), (&long, false)] {
            assert_eq!(next(), Some((text.to_owned(), is_cut)));
        }
        assert_eq!(next(), None);
        assert_eq!(next_line(&mut &b"a\xffb"[..]).unwrap().unwrap().text, "a\u{fffd}b");
    }
}
