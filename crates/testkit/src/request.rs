//! Parser of HTTP requests. Supports two kinds of body, and leaves following bytes for the next request.

use std::io::{BufRead, Read};

use serde_json::Value;

/// Maximum bytes of a line and of a body.
const MAX_LINE_BYTES: u64 = 1 << 20;
const MAX_BODY_BYTES: usize = 64 << 20;

/// Names and values in order of arrival.
pub type Fields = Vec<(String, String)>;

/// A complete request. Header names are in lower case.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub method: String,
    pub target: String,
    pub headers: Fields,
    pub body: Vec<u8>,
}

impl Request {
    /// Reads the next request; returns `None` if the connection ended between requests.
    pub fn read(input: &mut impl BufRead) -> Option<Result<Request, &'static str>> {
        match read_line(input) {
            Ok(Some(first)) => Some(Request::parse_after_line(&first, input)),
            Ok(None) => None,
            Err(problem) => Some(Err(problem)),
        }
    }

    fn parse_after_line(first: &str, input: &mut impl BufRead) -> Result<Request, &'static str> {
        let mut words = first.split(' ');
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("no request line");
        };
        let (method, target, headers) = (method.to_owned(), target.to_owned(), read_headers(input)?);
        let mut request = Request { method, target, headers, body: Vec::new() };
        request.body = match (request.header("transfer-encoding"), request.header("content-length")) {
            (Some("chunked"), None) => read_chunked(input)?,
            (None, Some(length)) => read_exact_body(input, length.parse().map_err(|_| "a length that is none")?)?,
            (None, None) => Vec::new(),
            _ => return Err("two kinds of body at once"),
        };
        Ok(request)
    }

    /// Returns a header if it occurs exactly once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let (_, value) = found.next()?;
        found.next().is_none().then_some(value)
    }

    /// Returns the target without its query, and without the host of a request in proxy form (RFC 9112, 3.2.2).
    pub fn path(&self) -> &str {
        let behind = self.target.strip_prefix("http://").and_then(|rest| rest.find('/').map(|at| &rest[at..]));
        behind.unwrap_or(&self.target).split('?').next().unwrap_or_default()
    }

    /// Returns one query parameter, not decoded.
    pub fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    /// Reports whether the request asks to close the connection.
    pub fn closes_connection(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// Returns the body as JSON, or null.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

fn read_headers(input: &mut impl BufRead) -> Result<Fields, &'static str> {
    let mut headers = Fields::new();
    loop {
        let text = read_line(input)?.ok_or("the end among the headers")?;
        if text.is_empty() {
            return Ok(headers);
        }
        let (name, value) = text.split_once(':').ok_or("a header without a colon")?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn read_chunked(input: &mut impl BufRead) -> Result<Vec<u8>, &'static str> {
    let mut body = Vec::new();
    loop {
        let size = read_line(input)?.ok_or("the end among the chunks")?;
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
        let size = size.map_err(|_| "a chunk size that is none")?;
        if size == 0 {
            read_headers(input)?;
            return Ok(body);
        }
        body.extend(read_exact_body(input, size)?);
        if body.len() > MAX_BODY_BYTES || read_line(input)?.is_none_or(|rest| !rest.is_empty()) {
            return Err("a chunk that does not end");
        }
    }
}

fn read_exact_body(input: &mut impl BufRead, length: usize) -> Result<Vec<u8>, &'static str> {
    if length > MAX_BODY_BYTES {
        return Err("a body too large");
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).map_err(|_| "the end within the body")?;
    Ok(body)
}

/// Reads one line without its CRLF; returns `None` at the end of input or on a read error.
fn read_line(input: &mut impl BufRead) -> Result<Option<String>, &'static str> {
    let mut bytes = Vec::new();
    match input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes) {
        Ok(0) | Err(_) => return Ok(None),
        Ok(_) => {}
    }
    let text = bytes.strip_suffix(b"\r\n").ok_or("a line without CRLF")?;
    String::from_utf8(text.to_vec()).map(Some).map_err(|_| "a line that is not UTF-8")
}
