//! The request sent by the limit clients, byte for byte that of the client they are compared with.

use std::fs::read_to_string;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::BenchOptions;

/// Default template; a client's own template may be longer.
const DEFAULT_TEMPLATE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{"name":"echo","#,
    r#""arguments":{"text":"{text}"},"_meta":{"io.modelcontextprotocol/protocolVersion":"#,
    r#""2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#
);

/// A request with placeholders for its id between the pieces.
pub struct Template {
    pieces: Vec<Vec<u8>>,
    next: AtomicU64,
}

impl Template {
    pub fn new(options: &BenchOptions) -> Self {
        let template = match &options.template {
            Some(file) => read_to_string(file).unwrap(),
            None => DEFAULT_TEMPLATE.to_owned(),
        };
        let request = template.trim_end().replace("{text}", &options.text());
        assert!(request.contains("{id}"), "the template has an {{id}}");
        // As many digits as the other client's ids after some time.
        Self { pieces: request.split("{id}").map(Into::into).collect(), next: AtomicU64::new(10_000_000_000) }
    }

    /// Appends the request with a new id.
    pub fn append(&self, out: &mut Vec<u8>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        for (number, piece) in self.pieces.iter().enumerate() {
            if number > 0 {
                out.extend_from_slice(id.as_bytes());
            }
            out.extend_from_slice(piece);
        }
    }

    /// Returns the length of a request.
    pub fn length(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum::<usize>() + 11 * (self.pieces.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_has_a_unique_id() {
        let pieces = [&b"{\"id\":"[..], b",\"again\":", b"}"].map(Into::into).into();
        let template = Template { pieces, next: AtomicU64::new(10_000_000_000) };
        let mut out = Vec::new();
        template.append(&mut out);
        assert_eq!(out.len(), template.length());
        template.append(&mut out);
        let expected = "{\"id\":10000000000,\"again\":10000000000}{\"id\":10000000001,\"again\":10000000001}";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
