//! HTTP/1.1 by hand, as much as a model API writes of it: answers of one piece or of many.

use std::io::{self, Write};

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
