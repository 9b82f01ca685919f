//! Minimal HTTP/1.1 output for a model API: complete or chunked responses.

use std::io::{self, Write};

/// Formats the head of a response: the status, and headers except those about length.
pub(super) fn head(status: u16, headers: &[(&str, &str)]) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} Answer\r\n{headers}")
}

/// Sends bytes as one chunk; an empty chunk would end the body.
pub(super) fn write_chunk(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = format!("{:x}\r\n", bytes.len());
    stream.write_all(&[length.as_bytes(), bytes, b"\r\n"].concat())
}
