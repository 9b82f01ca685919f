//! How one line is written and read.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::digest::Digest;

/// Stands in the first line of each file, and in the head.
pub(super) const SCHEMA: u32 = 1;

/// What a line must carry to follow the one before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Link {
    pub(super) seq: u64,
    /// The hash of the line before.
    pub(super) prev: Option<String>,
}

impl Link {
    /// What the line after this text must carry.
    pub(super) fn next(&self, line: &[u8]) -> Self {
        Self { seq: self.seq + 1, prev: Some(Digest::of(line).to_string()) }
    }
}

/// A line to be written.
pub(super) struct Line<'a> {
    pub(super) is_first: bool,
    pub(super) link: &'a Link,
    /// The file that this one follows.
    pub(super) after: Option<&'a str>,
    /// How much of an unfinished line was found here and moved aside.
    pub(super) torn: u64,
    pub(super) entry: &'a RawValue,
}

impl Line<'_> {
    /// The text with its line break.
    pub(super) fn compose(&self) -> Result<Vec<u8>, serde_json::Error> {
        #[derive(Serialize)]
        struct Text<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            schema: Option<u32>,
            seq: u64,
            prev: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            after: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            torn: Option<u64>,
            entry: &'a RawValue,
        }
        let text = serde_json::to_string(&Text {
            schema: self.is_first.then_some(SCHEMA),
            seq: self.link.seq,
            prev: self.link.prev.as_deref(),
            after: self.after,
            torn: (self.torn > 0).then_some(self.torn),
            entry: self.entry,
        })?;
        let mut line = printable(text);
        line.push('\n');
        Ok(line.into_bytes())
    }
}

/// What a written line says about its place.
#[derive(Debug, Deserialize)]
pub(super) struct Record {
    pub(super) seq: u64,
    pub(super) prev: Option<String>,
    pub(super) after: Option<String>,
    pub(super) torn: Option<u64>,
}

impl Record {
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    pub(super) fn link(&self) -> Link {
        Link { seq: self.seq, prev: self.prev.clone() }
    }
}

/// The same JSON on one line of printable ASCII, so that nothing in it acts on a terminal.
///
/// Outside ASCII, and at DEL, only strings can be, which take an escape instead; below the space only white space can
/// be, between the tokens of raw values.
fn printable(json: String) -> String {
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return json;
    }
    let mut line = String::with_capacity(json.len() * 2);
    for character in json.chars() {
        match character {
            ' '..='~' => line.push(character),
            '\0'..' ' => line.push(' '),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a string does not fail.
                    let _ = write!(line, "\\u{unit:04x}");
                }
            }
        }
    }
    line
}
