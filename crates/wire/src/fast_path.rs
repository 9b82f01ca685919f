//! Fast path for common messages: a complete line, no duplicate or unknown keys in the envelope, and no escaped keys in
//! it or at the top of the result.
//!
//! It gives up without a reason at the first deviation; the incremental scanner then accepts or rejects the message.
//! Property tests compare the two.

use crate::envelope::{Envelope, Span};
use crate::scan::{StringEnd, quote_or_escape, skip_text};

/// Returns the parts of a common message; `None` for any other.
pub(crate) fn scan(line: &[u8]) -> Option<Envelope> {
    let mut envelope = Envelope::default();
    let mut seen_version = false;
    let mut at = skip_space(line, 0);
    let end = members(line, &mut at, |key, line, at| {
        let slot = match key {
            b"jsonrpc" if !seen_version => {
                seen_version = true;
                return value_end(line, at);
            }
            b"id" => &mut envelope.id,
            b"method" => &mut envelope.method,
            b"params" => &mut envelope.params,
            b"result" if line.get(at) == Some(&b'{') && envelope.result.is_none() => {
                let end = result_end(line, at, &mut envelope.result_type)?;
                envelope.result = Some(Span { start: at, end });
                return Some(end);
            }
            b"result" => &mut envelope.result,
            b"error" => &mut envelope.error,
            _ => return None,
        };
        let end = value_end(line, at)?;
        slot.replace(Span { start: at, end }).is_none().then_some(end)
    })?;
    (skip_space(line, end) == line.len()).then_some(envelope)
}

/// Returns the end of a result and records its `resultType`.
fn result_end(line: &[u8], mut at: usize, result_type: &mut Option<Span>) -> Option<usize> {
    members(line, &mut at, |key, line, at| {
        let end = value_end(line, at)?;
        let twice = key == b"resultType" && result_type.replace(Span { start: at, end }).is_some();
        (!twice).then_some(end)
    })
}

/// Walks an object that starts at `at`. Calls `take` with each key and the start of its value; `take` returns the end
/// of the value. Returns the end of the object.
#[inline]
fn members<'a>(
    line: &'a [u8],
    at: &mut usize,
    mut take: impl FnMut(&'a [u8], &'a [u8], usize) -> Option<usize>,
) -> Option<usize> {
    expect(line, at, b'{')?;
    *at = skip_space(line, *at);
    if line.get(*at) == Some(&b'}') {
        return Some(*at + 1);
    }
    loop {
        expect(line, at, b'"')?;
        let start = *at;
        // Keys with escapes go to the incremental scanner.
        let length = quote_or_escape(&line[start..])?;
        *at = start + length;
        expect(line, at, b'"')?;
        *at = skip_space(line, *at);
        expect(line, at, b':')?;
        *at = skip_space(line, *at);
        *at = take(&line[start..start + length], line, *at)?;
        *at = skip_space(line, *at);
        match line.get(*at)? {
            b',' => *at = skip_space(line, *at + 1),
            b'}' => return Some(*at + 1),
            _ => return None,
        }
    }
}

fn expect(line: &[u8], at: &mut usize, byte: u8) -> Option<()> {
    let found = *line.get(*at)? == byte;
    *at += 1;
    found.then_some(())
}

fn skip_space(line: &[u8], mut at: usize) -> usize {
    while matches!(line.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

fn value_end(line: &[u8], at: usize) -> Option<usize> {
    match line.get(at)? {
        b'"' => text_end(line, at + 1),
        b'{' | b'[' => nested_end(line, at + 1),
        b',' | b'}' | b']' | b':' => None,
        _ => {
            let length =
                line[at..].iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'))?;
            Some(at + length)
        }
    }
}

fn text_end(line: &[u8], at: usize) -> Option<usize> {
    match skip_text(line, at, false) {
        (end, StringEnd::Closed) => Some(end),
        (_, StringEnd::Open { .. }) => None,
    }
}

fn nested_end(line: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 1usize;
    loop {
        let byte = *line.get(at)?;
        at += 1;
        match byte {
            b'"' => at = text_end(line, at)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
}
