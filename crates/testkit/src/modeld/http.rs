//! HTTP/1.1 by hand, as much as a model API needs of it: requests of one piece, answers of one or of many.

use std::io::{self, BufRead, BufReader, Read, Write};

use crate::below::Guest;

/// The longest line of a head that is read.
const LONGEST_LINE: u64 = 1 << 16;
/// The longest body that is read: what Anthropic takes.
const LONGEST_BODY: u64 = 32 << 20;

/// Names and values, as they came and in their order.
pub type Fields = Vec<(String, String)>;

/// A request in full.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub method: String,
    pub path: String,
    pub headers: Fields,
    pub body: Vec<u8>,
}

impl Request {
    /// Reads one, or nothing if the peer closed before it.
    pub fn read(stream: &mut BufReader<Guest>) -> io::Result<Option<Request>> {
        let Some(first) = line(stream)? else { return Ok(None) };
        let mut words = first.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut request = Request { method, path, headers: headers(stream)?, body: Vec::new() };
        let length = request.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        if length > LONGEST_BODY {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        stream.take(length).read_to_end(&mut request.body)?;
        if (request.body.len() as u64) < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(Some(request)) }
    }

    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether the connection ends with it.
    pub fn is_last(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// The head of an answer: a status, and headers beside those that say how long it is.
pub(super) fn head(status: u16, headers: &[(&str, &str)]) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} Answer\r\n{headers}")
}

/// Sends bytes as one chunk; none at all would end the body.
pub(super) fn write_chunk(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = format!("{:x}\r\n", bytes.len());
    stream.write_all(&[length.as_bytes(), bytes, b"\r\n"].concat())
}

fn headers(stream: &mut impl BufRead) -> io::Result<Fields> {
    let mut headers = Fields::new();
    while let Some(line) = line(stream)?.filter(|line| !line.is_empty()) {
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    Ok(headers)
}

/// One line without its end; nothing at the end of the stream.
fn line(stream: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    stream.take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
    Ok((!bytes.is_empty()).then_some(text))
}
