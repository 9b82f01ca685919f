//! The demo server on stdin and stdout: one message per line.

use std::io::{self, BufRead, ErrorKind, Write};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::message::{INVALID_REQUEST, Outbox, RpcError, lock_unpoisoned};
use super::server::{DemoServer, DemoServerOptions};

/// Maximum length of a line. Longer lines are skipped and rejected.
const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// Serves one client on stdin and stdout until stdin ends or stdout is closed. Drops pending calls at the end without a
/// reply.
///
/// # Errors
///
/// Fails if the revision does not exist, if stdin cannot be read, or if writing to stdout fails with an error other
/// than EPIPE.
pub fn serve_stdio(options: DemoServerOptions) -> io::Result<()> {
    let server = DemoServer::new(options, environment())
        .map_err(|sentence| io::Error::new(ErrorKind::InvalidInput, sentence))?;
    serve(&server, &mut io::stdin().lock(), io::stdout())
}

#[expect(
    clippy::disallowed_methods,
    reason = "showing what environment a server gets is what the tool `environment` is for"
)]
/// Returns the names of the environment variables, sorted.
pub fn environment() -> Vec<String> {
    let variables = std::env::vars_os();
    let mut names: Vec<_> = variables.map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Serves one client on a pair of streams.
///
/// # Errors
///
/// Fails if a stream fails with an error other than EPIPE.
pub fn serve(server: &DemoServer, input: &mut dyn BufRead, output: impl Write + Send + 'static) -> io::Result<()> {
    let lines = Arc::new(LineOutbox::new(output));
    let out: Arc<dyn Outbox> = Arc::clone(&lines) as _;
    let ended = std::thread::scope(|scope| {
        // Without a thread the tide does not change.
        let tide = std::thread::Builder::new().name("demo-tide".to_owned());
        let _ = tide.spawn_scoped(scope, || server.run_tide_changes(&*out));
        let ended = answer_lines(server, input, &lines, &out);
        server.close();
        ended
    });
    match ended {
        // The client closed stdout first. Not an error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        ended => ended,
    }
}

/// Answers line by line until the input ends or the output fails.
fn answer_lines<W: Write>(
    server: &DemoServer,
    input: &mut dyn BufRead,
    lines: &LineOutbox<W>,
    out: &Arc<dyn Outbox>,
) -> io::Result<()> {
    loop {
        match read_line(input, MAX_LINE_BYTES) {
            Ok(InputLine::End) => return Ok(()),
            Ok(InputLine::TooLong) => {
                let complaint = format!("a line may have {MAX_LINE_BYTES} bytes at most");
                out.send(RpcError::new(INVALID_REQUEST, complaint).reply(Value::Null));
            }
            Ok(InputLine::Whole(line)) if line.trim_ascii().is_empty() => {}
            Ok(InputLine::Whole(line)) => server.handle(&line, out),
            Err(error) => return Err(error),
        }
        if let Some(error) = lines.take_error() {
            return Err(error);
        }
    }
}

/// Writes each message as one line. Keeps the first error for the loop.
struct LineOutbox<W> {
    output: Mutex<W>,
    error: Mutex<Option<io::Error>>,
}

impl<W: Write> LineOutbox<W> {
    fn new(output: W) -> Self {
        Self { output: Mutex::new(output), error: Mutex::default() }
    }

    fn take_error(&self) -> Option<io::Error> {
        lock_unpoisoned(&self.error).take()
    }
}

impl<W: Write + Send> Outbox for LineOutbox<W> {
    fn send(&self, message: Value) {
        let line = format!("{message}\n");
        let mut output = lock_unpoisoned(&self.output);
        let written = output.write_all(line.as_bytes()).and_then(|()| output.flush());
        if let Err(error) = written {
            lock_unpoisoned(&self.error).get_or_insert(error);
        }
    }
}

#[derive(Debug, PartialEq)]
enum InputLine {
    /// A line without its line break.
    Whole(Vec<u8>),
    /// A line skipped because of its length.
    TooLong,
    End,
}

/// Reads a line without buffering more than `longest` bytes of it.
fn read_line(input: &mut dyn BufRead, longest: usize) -> io::Result<InputLine> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let read = match input.fill_buf() {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let is_end = read.is_empty();
        let newline = read.iter().position(|byte| *byte == b'\n');
        let part = &read[..newline.unwrap_or(read.len())];
        is_too_long |= line.len() + part.len() > longest;
        if is_too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(newline.is_some());
        input.consume(used);
        match (is_end, newline) {
            (false, None) => {}
            _ if is_too_long => return Ok(InputLine::TooLong),
            (true, _) if line.is_empty() => return Ok(InputLine::End),
            _ => return Ok(InputLine::Whole(line)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[track_caller]
    fn check(input: &str, expected: &[InputLine]) {
        // A tiny buffer makes lines span several reads.
        let mut reader = BufReader::with_capacity(3, input.as_bytes());
        for line in expected.iter().chain([&InputLine::End, &InputLine::End]) {
            assert_eq!(read_line(&mut reader, 5).unwrap(), *line, "{input:?}");
        }
    }

    #[test]
    fn overlong_lines_are_reported() {
        let whole = |text: &str| InputLine::Whole(text.into());
        check("", &[]);
        check("a\nb", &[whole("a"), whole("b")]);
        check("\n\n", &[whole(""), whole("")]);
        check("12345\n123456\n1\n", &[whole("12345"), InputLine::TooLong, whole("1")]);
        check("123456789012345", &[InputLine::TooLong]);
    }

    /// Fails like a pipe without a reader.
    struct BrokenPipeWriter;

    impl Write for BrokenPipeWriter {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn broken_pipe_is_not_an_error() {
        let options = DemoServerOptions { revision: None, name: "demo".to_owned(), crash_after: None, tide: None };
        let server = DemoServer::new(options, Vec::new()).unwrap();
        let mut input = b"nonsense\nmore nonsense\n".as_slice();
        serve(&server, &mut input, BrokenPipeWriter).unwrap();
        assert_eq!(input, b"more nonsense\n");
    }
}
