//! The lines between a client and its gateway, as far as the relay looks at them.

use std::io;

use memchr::memchr;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};
use wharf_serve::LEAVE_LINE;

use super::transcript::ClientTranscript;

/// Maximum length of a line that the relay looks at. A gateway rejects longer ones.
const MAX_INPUT_LINE_BYTES: usize = 8 * 1024 * 1024;
/// Maximum length of a line of a gateway that the relay looks at.
const MAX_OUTPUT_LINE_BYTES: usize = 64 * 1024;

/// A piece of the client's input, with its line break.
#[derive(Debug, PartialEq, Eq)]
pub enum InputPiece {
    Line(Vec<u8>),
    /// Part of a line that is too long.
    Part(Vec<u8>),
    /// The end of such a line.
    LastPart(Vec<u8>),
}

impl InputPiece {
    pub fn bytes(&self) -> &[u8] {
        let (Self::Line(bytes) | Self::Part(bytes) | Self::LastPart(bytes)) = self;
        bytes
    }
}

/// Splits the client's input into lines.
pub struct InputLines<R> {
    input: R,
    line: Vec<u8>,
    is_long: bool,
    max_bytes: usize,
}

impl<R: AsyncBufRead + Unpin> InputLines<R> {
    pub fn new(input: R) -> Self {
        Self { input, line: Vec::new(), is_long: false, max_bytes: MAX_INPUT_LINE_BYTES }
    }

    /// Reads the next piece. `None` at the end. Cancel-safe.
    ///
    /// # Errors
    ///
    /// Fails if the input fails.
    pub async fn next(&mut self) -> io::Result<Option<InputPiece>> {
        loop {
            let read = self.input.fill_buf().await?;
            if read.is_empty() {
                return Ok(self.take_rest());
            }
            let end = memchr(b'\n', read).map(|at| at + 1);
            let used = end.unwrap_or(read.len());
            self.line.extend_from_slice(&read[..used]);
            self.input.consume(used);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                let is_long = std::mem::take(&mut self.is_long);
                return Ok(Some(if is_long { InputPiece::LastPart(line) } else { InputPiece::Line(line) }));
            }
            if self.line.len() > self.max_bytes {
                self.is_long = true;
                return Ok(Some(InputPiece::Part(std::mem::take(&mut self.line))));
            }
        }
    }

    /// Returns what the input has after its last line break, as a line.
    fn take_rest(&mut self) -> Option<InputPiece> {
        let mut line = std::mem::take(&mut self.line);
        let is_long = std::mem::take(&mut self.is_long);
        if line.is_empty() && !is_long {
            return None;
        }
        line.push(b'\n');
        Some(if is_long { InputPiece::LastPart(line) } else { InputPiece::Line(line) })
    }
}

/// How much of a gateway's output the relay looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputMode {
    /// Each line, for the result of `initialize`.
    Opening,
    /// Nothing but the byte that announces the end.
    Open,
    /// Each line, for the ends of subscriptions.
    Leaving,
}

/// Passes the output of a gateway on to the client.
pub struct OutputFilter {
    mode: OutputMode,
    line: Vec<u8>,
    is_long: bool,
    /// Number of times that the gateway has said that it leaves: before its last responses, and after them.
    pub leave_lines: usize,
}

impl OutputFilter {
    pub fn new() -> Self {
        Self { mode: OutputMode::Opening, line: Vec::new(), is_long: false, leave_lines: 0 }
    }

    /// Takes bytes of the gateway, and adds those for the client to `passed`.
    pub fn push(&mut self, mut bytes: &[u8], transcript: &mut ClientTranscript, passed: &mut Vec<u8>) {
        while !bytes.is_empty() {
            bytes = match self.mode {
                OutputMode::Open => self.pass(bytes, passed),
                OutputMode::Opening | OutputMode::Leaving => self.look(bytes, transcript, passed),
            };
        }
    }

    /// Passes everything up to the byte that announces the end. Returns the rest.
    fn pass<'a>(&mut self, bytes: &'a [u8], passed: &mut Vec<u8>) -> &'a [u8] {
        let end = memchr(LEAVE_LINE[0], bytes).unwrap_or(bytes.len());
        passed.extend_from_slice(&bytes[..end]);
        if end < bytes.len() {
            self.mode = OutputMode::Leaving;
        }
        &bytes[end..]
    }

    /// Looks at the next line, or its part. Returns the rest.
    fn look<'a>(&mut self, bytes: &'a [u8], transcript: &mut ClientTranscript, passed: &mut Vec<u8>) -> &'a [u8] {
        let end = memchr(b'\n', bytes).map(|at| at + 1);
        let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        self.line.extend_from_slice(part);
        if self.is_long || self.line.len() > MAX_OUTPUT_LINE_BYTES {
            self.is_long = end.is_none();
            passed.append(&mut self.line);
        } else if end.is_some() {
            self.take_line(transcript, passed);
        }
        rest
    }

    fn take_line(&mut self, transcript: &mut ClientTranscript, passed: &mut Vec<u8>) {
        let mut line = std::mem::take(&mut self.line);
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if text == LEAVE_LINE {
            self.mode = OutputMode::Leaving;
            self.leave_lines += 1;
            return;
        }
        match self.mode {
            OutputMode::Leaving if transcript.is_end_of_subscription(text) => return,
            OutputMode::Leaving | OutputMode::Open => {}
            OutputMode::Opening => {
                transcript.note_output(text);
                if !transcript.awaits_result() {
                    self.mode = OutputMode::Open;
                }
            }
        }
        passed.append(&mut line);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;
    use wharf_serve::ClientMessage;

    use super::*;

    #[tokio::test]
    async fn input_is_split_into_lines() {
        let mut lines = InputLines::new(BufReader::with_capacity(3, &b"ab\n\nabcdefghi\nx"[..]));
        lines.max_bytes = 5;
        let mut found = Vec::new();
        while let Some(piece) = lines.next().await.unwrap() {
            found.push(piece);
        }
        let line = |text: &str| InputPiece::Line(text.into());
        let (part, last) = (InputPiece::Part("abcdefgh".into()), InputPiece::LastPart("i\n".into()));
        assert_eq!(found, [line("ab\n"), line("\n"), part, last, line("x\n")]);
    }

    /// Returns what the client gets, whatever the pieces that the gateway's output comes in.
    fn filtered(output: &str, transcript: &mut ClientTranscript, piece: usize) -> (String, usize) {
        let (mut filter, mut passed) = (OutputFilter::new(), Vec::new());
        for bytes in output.as_bytes().chunks(piece) {
            filter.push(bytes, transcript, &mut passed);
        }
        (String::from_utf8(passed).unwrap(), filter.leave_lines)
    }

    #[test]
    fn output_is_passed_on_without_the_lines_for_the_relay() {
        let long = format!("\"{}\"\n", "x".repeat(MAX_OUTPUT_LINE_BYTES * 2));
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let output = format!("1\n{long}\u{1}\n{result}\n{long}2\n\u{1}\n");
        for piece in [1, 7, 4096, output.len()] {
            let listen = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}"#;
            let mut transcript = ClientTranscript::default();
            assert_eq!(filtered(&output, &mut transcript, piece), (format!("1\n{long}{result}\n{long}2\n"), 2));
            transcript.note_input(&ClientMessage::parse(listen.into()).unwrap());
            assert_eq!(filtered(&output, &mut transcript, piece), (format!("1\n{long}{long}2\n"), 2));
        }
    }

    #[test]
    fn result_of_initialize_is_noted() {
        let mut transcript = ClientTranscript::default();
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
        transcript.note_input(&ClientMessage::parse(initialize.into()).unwrap());
        let output = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
        assert_eq!(filtered(output, &mut transcript, 5), (output.to_owned(), 0));
        assert!(!transcript.awaits_result());
    }
}
