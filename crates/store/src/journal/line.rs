//! The format of one journal line.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::digest::ContentDigest;

/// Format version, recorded in the first line of each file and in the head.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// Sequence number and hash that tie a line to its predecessor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ChainLink {
    pub(super) seq: u64,
    /// Hash of the preceding line.
    pub(super) prev: Option<String>,
}

impl ChainLink {
    /// Returns the link of the line that follows `line`.
    pub(super) fn next(&self, line: &[u8]) -> Self {
        Self { seq: self.seq + 1, prev: Some(ContentDigest::from_bytes(line).to_string()) }
    }
}

/// A line to be written.
pub(super) struct JournalLine<'a> {
    pub(super) is_first: bool,
    pub(super) link: &'a ChainLink,
    /// Name of the preceding file.
    pub(super) after: Option<&'a str>,
    /// Size of the unfinished line that recovery moved aside before this line, in bytes.
    pub(super) torn: u64,
    pub(super) entry: &'a RawValue,
}

impl JournalLine<'_> {
    /// Serializes the line, including the line break.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        #[derive(Serialize)]
        struct LineFields<'a> {
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
        let text = serde_json::to_string(&LineFields {
            schema: self.is_first.then_some(SCHEMA_VERSION),
            seq: self.link.seq,
            prev: self.link.prev.as_deref(),
            after: self.after,
            torn: (self.torn > 0).then_some(self.torn),
            entry: self.entry,
        })?;
        let mut line = escape_to_ascii(text);
        line.push('\n');
        Ok(line.into_bytes())
    }
}

/// Chain fields of a written line.
#[derive(Debug, Deserialize)]
pub(super) struct LineRecord {
    pub(super) seq: u64,
    pub(super) prev: Option<String>,
    pub(super) after: Option<String>,
    pub(super) torn: Option<u64>,
}

impl LineRecord {
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    pub(super) fn link(&self) -> ChainLink {
        ChainLink { seq: self.seq, prev: self.prev.clone() }
    }
}

/// Returns the same JSON on one line of printable ASCII, without terminal control characters.
///
/// Non-ASCII characters and DEL occur only inside strings and are escaped there. Characters below the space are white
/// space between the tokens of raw values and become spaces.
fn escape_to_ascii(json: String) -> String {
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
                    // Writing to a `String` is infallible.
                    let _ = write!(line, "\\u{unit:04x}");
                }
            }
        }
    }
    line
}
