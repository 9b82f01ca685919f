//! A browser stand-in for tests.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

/// Requests a page and returns the target of its redirect, if any. Blocks until the page responds.
pub fn visit(url: &str) -> io::Result<Option<String>> {
    let rest = url.strip_prefix("http://").ok_or_else(|| io::Error::other("only http:// URLs are supported"))?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut stream = TcpStream::connect(authority)?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n").as_bytes())?;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("location") => return Ok(Some(value.trim().to_owned())),
            _ if line.is_empty() => return Ok(None),
            _ => {}
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}
