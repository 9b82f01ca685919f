//! Single-pass scanner that extracts the envelope of a message and skips the rest.
//!
//! The scanner knows two levels only: the envelope, and the top of `result` (for `resultType`). Deeper content is
//! skipped by counting brackets and jumping over strings, in constant memory. Input comes in pieces of any size, so
//! that a message too large to buffer can still be followed to its id, which often comes last.
//!
//! Skipped content is not validated; decoding does that.

use std::borrow::Cow;

use bytes::Bytes;
use memchr::{memchr, memchr2};

use crate::envelope::{Envelope, Fault, PartialEnvelope, ScanError, Span};

/// Scans one complete message. Besides the scanner's own checks, the text must be UTF-8 without NUL bytes.
///
/// A common message takes the fast path. Any other message goes to the [`Scanner`], which is authoritative.
///
/// # Errors
///
/// Fails if the text is not a valid envelope. The error has the id, if one was found.
pub fn scan(line: &[u8]) -> Result<Envelope, ScanError> {
    if let Some(envelope) = crate::fast_path::scan(line)
        && check_text(line).is_ok()
    {
        return Ok(envelope);
    }
    let mut scanner = Scanner::new();
    scanner.push(line);
    let envelope = scanner.finish()?;
    check_text(line).map(|()| envelope).map_err(|fault| scanner.error(fault))
}

/// Checks that the text is UTF-8 without NUL bytes.
fn check_text(line: &[u8]) -> Result<(), Fault> {
    if line.len() <= MAX_SINGLE_PASS_BYTES && is_plain_ascii(line) {
        return Ok(());
    }
    if memchr(0, line).is_some() {
        return Err(Fault::Nul);
    }
    if line.is_ascii() {
        return Ok(());
    }
    std::str::from_utf8(line).map(|_| ()).map_err(|_| Fault::NotUtf8)
}

/// Maximum bytes for which one scalar pass is faster than two vectorized passes with setup cost.
const MAX_SINGLE_PASS_BYTES: usize = 1024;

/// Reports whether every byte is ASCII and none is NUL, as in most messages: one pass, eight bytes at a time.
///
/// Subtracting one from each byte sets the high bit of a zero; a byte with the high bit already set is not ASCII.
fn is_plain_ascii(line: &[u8]) -> bool {
    let odd = |word: u64| word | word.wrapping_sub(ONES);
    let (wide, rest) = line.as_chunks::<32>();
    let mut found = 0;
    for chunk in wide {
        let (words, _) = chunk.as_chunks::<8>();
        found |= words.iter().fold(0, |found, word| found | odd(u64::from_le_bytes(*word)));
    }
    let (words, rest) = rest.as_chunks::<8>();
    found |= words.iter().fold(0, |found, word| found | odd(u64::from_le_bytes(*word)));
    found & HIGHS == 0 && rest.iter().all(|byte| (1..0x80).contains(byte))
}

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);

/// Splits a batch into messages. Returns `None` if the line is not an array of JSON values.
pub fn split_batch(line: &Bytes) -> Option<Vec<Bytes>> {
    let items: Vec<&serde_json::value::RawValue> = serde_json::from_slice(line).ok()?;
    Some(items.into_iter().map(|item| line.slice_ref(item.get().as_bytes())).collect())
}

/// Maximum bytes of a stored key; all protocol keys are shorter.
const MAX_KEY_BYTES: usize = 64;
/// Maximum bytes of a stored id; ids created by this client are shorter.
const MAX_ID_BYTES: usize = 40;
/// Bytes searched word by word before the search switches to `memchr`.
const SHORT_STRING_BYTES: usize = 32;
/// Maximum number of unknown keys in an envelope.
const MAX_EXTRA_KEYS: usize = 64;

/// The incremental scanner: push pieces, then finish.
#[derive(Debug, Clone)]
pub struct Scanner {
    state: ScannerState,
    level: ScannerLevel,
    /// Bytes consumed before the current piece.
    base: usize,
    value_start: usize,
    depth: usize,
    key: PrefixBuffer<MAX_KEY_BYTES>,
    /// Hash of the key's raw bytes.
    key_hash: u64,
    name: KnownKey,
    id: PrefixBuffer<MAX_ID_BYTES>,
    envelope: Envelope,
    seen: u8,
    unknown_key_hashes: Vec<u64>,
    result_start: usize,
    fault: Option<Fault>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScannerState {
    Start,
    FirstKey,
    NextKey,
    Key { escaped: bool },
    Colon,
    Value,
    Text { escaped: bool },
    Scalar,
    Nested,
    NestedText { escaped: bool },
    AfterValue,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScannerLevel {
    Envelope,
    Result,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum KnownKey {
    Other = 0,
    JsonRpc = 1,
    Id = 2,
    Method = 4,
    Params = 8,
    Result = 16,
    Error = 32,
    ResultType = 64,
}

/// The first bytes of a token, and its full length.
#[derive(Debug, Clone, Copy)]
struct PrefixBuffer<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> PrefixBuffer<N> {
    const EMPTY: Self = Self { bytes: [0; N], len: 0 };

    fn extend(&mut self, piece: &[u8]) {
        let room = N.saturating_sub(self.len).min(piece.len());
        if room > 0 {
            self.bytes[self.len..self.len + room].copy_from_slice(&piece[..room]);
        }
        self.len += piece.len();
    }

    fn complete(&self) -> Option<&[u8]> {
        self.bytes.get(..self.len)
    }
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// Returns a scanner at the start of a message.
    pub fn new() -> Self {
        Self {
            state: ScannerState::Start,
            level: ScannerLevel::Envelope,
            base: 0,
            value_start: 0,
            depth: 0,
            key: PrefixBuffer::EMPTY,
            key_hash: HASH_START,
            name: KnownKey::Other,
            id: PrefixBuffer::EMPTY,
            envelope: Envelope::default(),
            seen: 0,
            unknown_key_hashes: Vec::new(),
            result_start: 0,
            fault: None,
        }
    }

    /// Scans the next piece. After an error, further pieces are ignored.
    pub fn push(&mut self, piece: &[u8]) {
        let mut at = 0;
        while at < piece.len() && self.fault.is_none() {
            at = self.step(piece, at);
        }
        self.base += piece.len();
    }

    /// Returns the envelope or the error. Spans are relative to the first byte pushed.
    ///
    /// # Errors
    ///
    /// Fails if the message is incomplete or invalid.
    pub fn finish(&self) -> Result<Envelope, ScanError> {
        match (self.fault, self.state) {
            (Some(fault), _) => Err(self.error(fault)),
            (None, ScannerState::Done) => Ok(self.envelope),
            (None, ScannerState::Start) => Err(self.error(Fault::NotAnObject)),
            (None, _) => Err(self.error(Fault::Truncated)),
        }
    }

    /// Returns the raw id if it was found and is within the length of this client's ids.
    pub fn id_so_far(&self) -> Option<&[u8]> {
        self.envelope.id.and_then(|_| self.id.complete())
    }

    /// Returns the parts found so far, for a message that is not buffered.
    pub fn partial_envelope(&self) -> PartialEnvelope {
        PartialEnvelope {
            id: self.id_so_far().map(<[u8]>::to_vec),
            has_method: self.seen & KnownKey::Method as u8 != 0,
        }
    }

    fn error(&self, fault: Fault) -> ScanError {
        let PartialEnvelope { id, has_method } = self.partial_envelope();
        ScanError { fault, id, has_method }
    }

    /// Consumes at least one byte or sets an error. Returns the next position.
    fn step(&mut self, piece: &[u8], at: usize) -> usize {
        match self.state {
            ScannerState::Text { escaped } => self.text(piece, at, escaped),
            ScannerState::Nested => self.nested(piece, at),
            ScannerState::NestedText { escaped } => self.nested_text(piece, at, escaped),
            ScannerState::Key { escaped } => self.key(piece, at, escaped),
            ScannerState::Scalar => self.scalar(piece, at),
            _ => self.structure(piece[at], at),
        }
    }

    /// Consumes one byte between tokens.
    fn structure(&mut self, byte: u8, at: usize) -> usize {
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            return at + 1;
        }
        match (self.state, byte) {
            (ScannerState::Start, b'{') => self.state = ScannerState::FirstKey,
            (ScannerState::Start, b'[') => self.fault = Some(Fault::Batch),
            (ScannerState::Start, _) => self.fault = Some(Fault::NotAnObject),
            (ScannerState::FirstKey | ScannerState::NextKey, b'"') => {
                self.key.len = 0;
                self.key_hash = HASH_START;
                self.state = ScannerState::Key { escaped: false };
            }
            (ScannerState::FirstKey | ScannerState::AfterValue, b'}') => self.close_level(at + 1),
            (ScannerState::Colon, b':') => self.state = ScannerState::Value,
            (ScannerState::Value, _) => return self.open_value(byte, at),
            (ScannerState::AfterValue, b',') => self.state = ScannerState::NextKey,
            (ScannerState::Done, _) => self.fault = Some(Fault::Trailing),
            _ => self.fault = Some(Fault::Malformed(self.base + at)),
        }
        at + 1
    }

    fn key(&mut self, piece: &[u8], at: usize, escaped: bool) -> usize {
        if escaped {
            self.extend_key(&piece[at..=at]);
            self.state = ScannerState::Key { escaped: false };
            return at + 1;
        }
        let rest = &piece[at..];
        let Some(found) = quote_or_escape(rest) else {
            self.extend_key(rest);
            return piece.len();
        };
        if rest[found] == b'"' {
            self.extend_key(&rest[..found]);
            self.state = ScannerState::Colon;
            self.name_key();
        } else {
            self.extend_key(&rest[..=found]);
            self.state = ScannerState::Key { escaped: true };
        }
        at + found + 1
    }

    fn extend_key(&mut self, piece: &[u8]) {
        self.key.extend(piece);
        self.key_hash = piece.iter().fold(self.key_hash, hash);
    }

    /// Identifies the key that just ended, and rejects a duplicate.
    fn name_key(&mut self) {
        let decoded = self.key.complete().and_then(unescape);
        let key = decoded.as_deref().unwrap_or_default();
        self.name = match (self.level, key) {
            (ScannerLevel::Envelope, b"jsonrpc") => KnownKey::JsonRpc,
            (ScannerLevel::Envelope, b"id") => KnownKey::Id,
            (ScannerLevel::Envelope, b"method") => KnownKey::Method,
            (ScannerLevel::Envelope, b"params") => KnownKey::Params,
            (ScannerLevel::Envelope, b"result") => KnownKey::Result,
            (ScannerLevel::Envelope, b"error") => KnownKey::Error,
            (ScannerLevel::Result, b"resultType") => KnownKey::ResultType,
            _ => KnownKey::Other,
        };
        let bit = self.name as u8;
        if bit != 0 {
            if self.seen & bit != 0 {
                self.fault = Some(Fault::DuplicateKey);
            }
            self.seen |= bit;
        } else if self.level == ScannerLevel::Envelope {
            // A key that is too long or not a valid string is compared by its raw bytes.
            self.record_unknown_key(decoded.map_or(self.key_hash, |key| key.iter().fold(HASH_START, hash)));
        }
    }

    fn record_unknown_key(&mut self, key_hash: u64) {
        if self.unknown_key_hashes.contains(&key_hash) {
            self.fault = Some(Fault::DuplicateKey);
        } else if self.unknown_key_hashes.len() == MAX_EXTRA_KEYS {
            self.fault = Some(Fault::TooManyKeys);
        } else {
            self.unknown_key_hashes.push(key_hash);
        }
    }

    fn open_value(&mut self, byte: u8, at: usize) -> usize {
        self.value_start = self.base + at;
        if self.name == KnownKey::Id {
            // Start of the id: a text that ends inside it has no id.
            self.id.len = 0;
        }
        match byte {
            b'"' => {
                self.keep_id(&[byte]);
                self.state = ScannerState::Text { escaped: false };
                at + 1
            }
            b'{' if self.name == KnownKey::Result => {
                self.result_start = self.value_start;
                self.level = ScannerLevel::Result;
                self.state = ScannerState::FirstKey;
                at + 1
            }
            b'{' | b'[' => {
                self.keep_id(&[byte]);
                self.depth = 1;
                self.state = ScannerState::Nested;
                at + 1
            }
            b',' | b'}' | b']' | b':' => {
                self.fault = Some(Fault::Malformed(self.base + at));
                at + 1
            }
            _ => {
                self.state = ScannerState::Scalar;
                at
            }
        }
    }

    fn text(&mut self, piece: &[u8], at: usize, escaped: bool) -> usize {
        let (end, state) = skip_text(piece, at, escaped);
        self.keep_id(&piece[at..end]);
        match state {
            StringEnd::Closed => self.close_value(end),
            StringEnd::Open { escaped } => self.state = ScannerState::Text { escaped },
        }
        end
    }

    fn nested_text(&mut self, piece: &[u8], at: usize, escaped: bool) -> usize {
        let (end, state) = skip_text(piece, at, escaped);
        self.state = match state {
            StringEnd::Closed => ScannerState::Nested,
            StringEnd::Open { escaped } => ScannerState::NestedText { escaped },
        };
        end
    }

    fn nested(&mut self, piece: &[u8], mut at: usize) -> usize {
        while let Some(&byte) = piece.get(at) {
            at += 1;
            match byte {
                b'"' => match skip_text(piece, at, false) {
                    (end, StringEnd::Closed) => at = end,
                    (end, StringEnd::Open { escaped }) => {
                        self.state = ScannerState::NestedText { escaped };
                        return end;
                    }
                },
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        // Arrays and objects are not valid ids: exceed the length limit so that they are discarded.
                        self.keep_id(&[0; MAX_ID_BYTES]);
                        self.close_value(at);
                        return at;
                    }
                }
                _ => {}
            }
        }
        at
    }

    fn scalar(&mut self, piece: &[u8], at: usize) -> usize {
        let rest = &piece[at..];
        let len = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'));
        let end = at + len.unwrap_or(rest.len());
        self.keep_id(&piece[at..end]);
        if len.is_some() {
            self.close_value(end);
        }
        end
    }

    fn keep_id(&mut self, piece: &[u8]) {
        if self.name == KnownKey::Id && self.level == ScannerLevel::Envelope {
            self.id.extend(piece);
        }
    }

    fn close_value(&mut self, end: usize) {
        let span = Some(Span { start: self.value_start, end: self.base + end });
        match self.name {
            KnownKey::Id => self.envelope.id = span,
            KnownKey::Method => self.envelope.method = span,
            KnownKey::Params => self.envelope.params = span,
            KnownKey::Result => self.envelope.result = span,
            KnownKey::Error => self.envelope.error = span,
            KnownKey::ResultType => self.envelope.result_type = span,
            KnownKey::JsonRpc | KnownKey::Other => {}
        }
        self.name = KnownKey::Other;
        self.state = ScannerState::AfterValue;
    }

    fn close_level(&mut self, end: usize) {
        match self.level {
            ScannerLevel::Envelope => self.state = ScannerState::Done,
            ScannerLevel::Result => {
                self.level = ScannerLevel::Envelope;
                self.envelope.result = Some(Span { start: self.result_start, end: self.base + end });
                self.state = ScannerState::AfterValue;
            }
        }
    }
}

pub(crate) enum StringEnd {
    Closed,
    Open { escaped: bool },
}

/// Skips to the end of a string that continues at `at`, or to the end of the piece.
pub(crate) fn skip_text(piece: &[u8], mut at: usize, escaped: bool) -> (usize, StringEnd) {
    if escaped {
        at += 1;
    }
    while let Some(found) = piece.get(at..).and_then(quote_or_escape) {
        if piece[at + found] == b'"' {
            return (at + found + 1, StringEnd::Closed);
        }
        at += found + 2;
    }
    // A trailing backslash escapes the first byte of the next piece.
    (piece.len(), StringEnd::Open { escaped: at > piece.len() })
}

/// Returns the position of the first quote or backslash. Most strings are short, so the first bytes are searched eight
/// at a time by arithmetic, without the setup cost of `memchr`.
pub(crate) fn quote_or_escape(text: &[u8]) -> Option<usize> {
    let (words, _) = text.as_chunks::<8>();
    for (number, word) in words.iter().take(SHORT_STRING_BYTES / 8).enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = zero_bytes(word ^ QUOTES) | zero_bytes(word ^ ESCAPES);
        if found != 0 {
            return Some(8 * number + found.trailing_zeros() as usize / 8);
        }
    }
    let searched = (8 * words.len()).min(SHORT_STRING_BYTES);
    memchr2(b'"', b'\\', &text[searched..]).map(|found| searched + found)
}

const QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
const ESCAPES: u64 = u64::from_le_bytes([b'\\'; 8]);

/// Marks the zero bytes of a word. Only the lowest mark is reliable.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// Resolves the escapes of a key; returns `None` if it is not a valid string.
fn unescape(key: &[u8]) -> Option<Cow<'_, [u8]>> {
    if memchr(b'\\', key).is_none() {
        return Some(Cow::Borrowed(key));
    }
    let quoted = [b"\"", key, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).ok().map(|text| Cow::Owned(text.into_bytes()))
}

/// Performs one step of FNV-1a.
fn hash(hash: u64, byte: &u8) -> u64 {
    (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
}

const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: &str) -> Fault {
        scan(line.as_bytes()).unwrap_err().fault
    }

    fn text(line: &str, span: Option<Span>) -> Option<&str> {
        span.map(|span| &line[span.start..span.end])
    }

    #[test]
    fn parts_are_found_in_any_order() {
        let line = r#" { "result" : {"a":[1,"]}\""],"resultType":"complete"} , "x":null, "id":7,"jsonrpc":"2.0"} "#;
        let envelope = scan(line.as_bytes()).unwrap();
        assert_eq!(text(line, envelope.id), Some("7"));
        assert_eq!(text(line, envelope.result), Some(r#"{"a":[1,"]}\""],"resultType":"complete"}"#));
        assert_eq!(envelope.result_type(line.as_bytes()).as_deref(), Some("complete"));
        let line = r#"{"jsonrpc":"2.0","method":"a\/b","params":{"id":1,"result":{}}}"#;
        let envelope = scan(line.as_bytes()).unwrap();
        assert_eq!(envelope.method(line.as_bytes()).as_deref(), Some("a/b"));
        assert_eq!(text(line, envelope.params), Some(r#"{"id":1,"result":{}}"#));
        assert_eq!((envelope.id, envelope.result), (None, None));
    }

    #[test]
    fn escaped_keys_are_decoded() {
        let line = r#"{"\u0069d":1,"re\u0073ult":{}}"#;
        let envelope = scan(line.as_bytes()).unwrap();
        assert_eq!(text(line, envelope.id), Some("1"));
        assert_eq!(text(line, envelope.result), Some("{}"));
        assert_eq!(fault(r#"{"id":1,"\u0069d":2}"#), Fault::DuplicateKey);
        // Look-alike keys are different keys (CVE-2026-27896).
        for line in [r#"{"id\u0000":1}"#, r#"{"ID":1}"#, r#"{"Id":1}"#, r#"{"paramſ":1}"#] {
            assert_eq!(scan(line.as_bytes()).unwrap(), Envelope::default(), "{line}");
        }
    }

    #[test]
    fn errors_are_distinguished() {
        for (line, expected) in [
            ("Server started", Fault::NotAnObject),
            ("", Fault::NotAnObject),
            ("[]", Fault::Batch),
            (r#"{"id":1"#, Fault::Truncated),
            (r#"{"id":1,}"#, Fault::Malformed(8)),
            (r#"{"id":}"#, Fault::Malformed(6)),
            (r#"{"id" 1}"#, Fault::Malformed(6)),
            (r#"{"id":1,"id":2}"#, Fault::DuplicateKey),
            (r#"{"x":1,"x":2}"#, Fault::DuplicateKey),
            (r#"{"aaaaaaaa":0,"\ud800":1,"bbbbbbbbbbbbb":0,"\ud800":2}"#, Fault::DuplicateKey),
            (r#"{"result":{"resultType":"a","resultType":"b"}}"#, Fault::DuplicateKey),
            (r#"{"id":1}x"#, Fault::Trailing),
            (r#"{"id":1}{"id":2}"#, Fault::Trailing),
            ("{\"id\":1,\"x\":\"\0\"}", Fault::Nul),
        ] {
            assert_eq!(fault(line), expected, "{line}");
        }
        let broken = scan(b"{\"id\":17,\"result\":{\"x\":\"\xff\"}}").unwrap_err();
        assert_eq!((broken.fault, broken.id.as_deref(), broken.has_method), (Fault::NotUtf8, Some(&b"17"[..]), false));
    }

    #[test]
    fn long_keys_are_distinguished() {
        let key = "k".repeat(200);
        let apart = format!(r#"{{"{key}a":1,"{key}b":2,"id":1}}"#);
        assert!(scan(apart.as_bytes()).is_ok());
        assert_eq!(fault(&format!(r#"{{"{key}a":1,"{key}a":2}}"#)), Fault::DuplicateKey);
    }

    #[test]
    fn malformed_response_still_has_its_id() {
        for (line, id) in [
            (r#"{"id":17,"result":{"a":"#, Some(&b"17"[..])),
            (r#"{"result":{"a":1},"id":17}trailing"#, Some(b"17")),
            (r#"{"result":{"a":1},"id":1"#, None),
            (r#"{"id":[1],"result":"#, None),
        ] {
            assert_eq!(scan(line.as_bytes()).unwrap_err().id.as_deref(), id, "{line}");
        }
    }

    #[test]
    fn id_is_found_after_unbuffered_content() {
        let mut scanner = Scanner::new();
        scanner.push(br#"{"result":{"content":[{"text":""#);
        for _ in 0..1000 {
            scanner.push(&[b'x'; 1000]);
            scanner.push(b"\\");
            scanner.push(b"\"");
        }
        scanner.push(br#""}]},"i"#);
        scanner.push(br#"d":4"#);
        scanner.push(br#"2 }"#);
        assert!(scanner.finish().is_ok());
        assert_eq!(scanner.id_so_far(), Some(&b"42"[..]));
    }
}
