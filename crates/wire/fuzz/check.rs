//! What must hold of any bytes the scanner is given. The fuzz target and `tests/corpus.rs` share it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use wharf_wire::{Envelope, Fault, Id, JsonLimits, ScanError, Scanner, Span, scan, split_batch};

/// Keys longer than this, as written, are told apart by their beginning and their length only.
const KEY_KEPT: usize = 64;
/// Keys beyond the protocol's own that an envelope may have.
const EXTRA_KEYS: usize = 64;
/// How many ways to cut a line in two are tried; a shorter one is cut everywhere.
const CUTS: usize = 64;

/// Panics where something does not hold; gives the scanner's verdict otherwise.
pub fn check(line: &[u8]) -> Result<Envelope, ScanError> {
    let verdict = scan(line);
    same_in_pieces(line, &verdict);
    if let Ok(envelope) = &verdict {
        lies_inside(line, envelope);
    }
    if let Some(message) = Message::read(line) {
        agrees(line, &message, &verdict);
    }
    never_undercounts(line);
    let _ = Id::parse(line);
    let _ = split_batch(&line.to_vec().into());
    verdict
}

/// The resumable scanner says the same as the straight road, however its input is cut.
fn same_in_pieces(line: &[u8], verdict: &Result<Envelope, ScanError>) {
    let mut whole = Scanner::new();
    whole.push(line);
    match (whole.finish(), verdict) {
        (Ok(_), Err(error)) => {
            let unclean = if line.contains(&0) { Fault::Nul } else { Fault::NotUtf8 };
            assert!(line.contains(&0) || str::from_utf8(line).is_err(), "only unclean text is refused afterwards");
            assert_eq!((error.fault, error.id.as_deref()), (unclean, whole.id_so_far()));
        }
        (said, verdict) => assert_eq!(&said, verdict, "both roads lead to the same place"),
    }
    for cut in (0..=line.len()).step_by(line.len() / CUTS + 1) {
        let (head, tail) = line.split_at(cut);
        same_as(&whole, [head, tail].into_iter(), &format!("cut at {cut}"));
    }
    same_as(&whole, line.chunks(1), "byte by byte");
}

fn same_as<'a>(whole: &Scanner, pieces: impl Iterator<Item = &'a [u8]>, how: &str) {
    let mut scanner = Scanner::new();
    pieces.for_each(|piece| scanner.push(piece));
    assert_eq!(scanner.finish(), whole.finish(), "{how}");
    assert_eq!(scanner.id_so_far(), whole.id_so_far(), "{how}");
}

/// Every part is a part of the line, and reading it is safe.
fn lies_inside(line: &[u8], envelope: &Envelope) {
    let Envelope { id, method, params, result, error, result_type } = *envelope;
    for span in [id, method, params, result, error, result_type].into_iter().flatten() {
        assert!(span.start < span.end && span.end <= line.len(), "{span:?} of {}", line.len());
        assert_eq!(span.to_raw(line).as_bytes(), &line[span.start..span.end]);
    }
    if let Some(inner) = result_type {
        let outer = result.expect("a result type is part of a result");
        assert!(outer.start < inner.start && inner.end < outer.end);
    }
    let _ = (envelope.id(line), envelope.method(line), envelope.result_type(line));
}

/// Where serde_json reads an object, the scanner finds the same parts in it or has a reason to refuse it.
fn agrees(line: &[u8], message: &Message<'_>, verdict: &Result<Envelope, ScanError>) {
    let Some((expected, refused)) = message.expected(line) else { return };
    // Two long keys may be taken for one; the protocol has none.
    let unsure = message.members.iter().filter(|member| member.is_long()).count() > 1;
    match verdict {
        Ok(envelope) => {
            assert!(!refused, "a message with a key twice, or too many, is refused");
            assert_eq!(*envelope, expected);
            reads_as_json_says(line, envelope);
        }
        Err(ScanError { fault: Fault::DuplicateKey | Fault::TooManyKeys, .. }) => assert!(refused || unsure),
        Err(error) => panic!("valid JSON refused: {}", error.fault),
    }
}

/// Ids, methods and result types mean what serde_json says they mean.
fn reads_as_json_says(line: &[u8], envelope: &Envelope) {
    let json = |span: Span| serde_json::from_slice::<Value>(span.slice(line)).ok();
    if let Some(value) = envelope.id.and_then(json) {
        match (envelope.id(line), &value) {
            (Some(Id::Text(text)), Value::String(expected)) => assert_eq!(text, expected.as_str()),
            (Some(Id::Integer(number)), Value::Number(_)) => assert_eq!(Some(number), value.as_i64()),
            (Some(Id::Float(number)), Value::Number(_)) => {
                assert_eq!((Some(number), None), (value.as_f64(), value.as_i64()));
            }
            (Some(Id::Null), Value::Null) => {}
            (Some(Id::Illegal), Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {}
            (read, value) => panic!("{value} was read as {read:?}"),
        }
    }
    if let Some(value) = envelope.method.and_then(json) {
        assert_eq!(envelope.method(line).as_deref(), value.as_str());
    }
    if let Some(value) = envelope.result_type.and_then(json) {
        assert_eq!(envelope.result_type(line).as_deref(), Some(value.as_str().unwrap_or_default()));
    }
}

/// What the bounds let through is no deeper and no larger than they say.
fn never_undercounts(line: &[u8]) {
    let _ = JsonLimits::default().check(line);
    let Ok(value) = serde_json::from_slice::<Value>(line) else { return };
    let (depth, nodes) = measure(&value);
    // A lone value is let through in any case.
    if nodes > 1 {
        assert!(JsonLimits { depth: usize::MAX, nodes: nodes - 1 }.check(line).is_err(), "{nodes} values");
    }
    if let Some(shallower) = depth.checked_sub(1) {
        assert!(JsonLimits { depth: shallower, nodes: usize::MAX }.check(line).is_err(), "{depth} levels");
    }
}

/// Levels and values. Recursion ends where serde_json's does.
fn measure(value: &Value) -> (usize, usize) {
    let inside: Vec<(usize, usize)> = match value {
        Value::Array(items) => items.iter().map(measure).collect(),
        Value::Object(members) => members.values().map(measure).collect(),
        _ => return (0, 1),
    };
    let deepest = inside.iter().map(|(depth, _)| *depth).max().unwrap_or_default();
    (1 + deepest, 1 + inside.iter().map(|(_, nodes)| nodes).sum::<usize>())
}

/// An object as serde_json sees it: its members in order, twins included, nothing decoded.
struct Message<'a> {
    members: Vec<Member<'a>>,
}

struct Member<'a> {
    key: &'a RawValue,
    value: &'a RawValue,
}

impl Member<'_> {
    /// `None` for one that is half of a surrogate pair, which no text is.
    fn name(&self) -> Option<String> {
        serde_json::from_str(self.key.get()).ok()
    }

    fn is_long(&self) -> bool {
        self.key.get().len() - "\"\"".len() > KEY_KEPT
    }

    fn span(&self, line: &[u8]) -> Span {
        let text = self.value.get();
        let start = text.as_ptr().addr() - line.as_ptr().addr();
        Span { start, end: start + text.len() }
    }
}

impl<'a> Message<'a> {
    fn read(text: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// The parts to be found, and whether the message is to be refused instead. `None` where a key has no name.
    fn expected(&self, line: &[u8]) -> Option<(Envelope, bool)> {
        let mut envelope = Envelope::default();
        let (mut extra, mut refused) = (0, self.has_twins(|_| true)?);
        for member in &self.members {
            let span = Some(member.span(line));
            match member.name()?.as_str() {
                "jsonrpc" => {}
                "id" => envelope.id = span,
                "method" => envelope.method = span,
                "params" => envelope.params = span,
                "error" => envelope.error = span,
                "result" => {
                    envelope.result = span;
                    if let Some(result) = Message::read(member.value.get().as_bytes()) {
                        refused |= result.has_twins(|name| name == "resultType")?;
                        envelope.result_type = result.find("resultType")?.map(|found| found.span(line));
                    }
                }
                _ => extra += 1,
            }
        }
        Some((envelope, refused || extra > EXTRA_KEYS))
    }

    fn find(&self, wanted: &str) -> Option<Option<&Member<'a>>> {
        let mut found = None;
        for member in &self.members {
            if member.name()? == wanted {
                found = Some(member);
            }
        }
        Some(found)
    }

    /// Whether two short keys of those that matter are the same.
    fn has_twins(&self, matters: impl Fn(&str) -> bool) -> Option<bool> {
        let mut names = Vec::new();
        for member in &self.members {
            names.push(member.name().filter(|name| !member.is_long() && matters(name)));
            member.name()?;
        }
        let mut names: Vec<String> = names.into_iter().flatten().collect();
        names.sort_unstable();
        Some(names.windows(2).any(|pair| pair[0] == pair[1]))
    }
}

impl<'de> Deserialize<'de> for Message<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Message<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Message<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry()? {
                    members.push(Member { key, value });
                }
                Ok(Message { members })
            }
        }
        deserializer.deserialize_map(Collect)
    }
}
