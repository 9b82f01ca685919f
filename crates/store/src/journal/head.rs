//! The record of the line that came last.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use super::line::{Link, SCHEMA};

/// The record has the same size always, so that writing it anew needs no space.
const WIDTH: usize = 191;

/// What the next line has to carry, and how long the current file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) link: Link,
    pub(super) size: u64,
}

#[derive(Serialize, Deserialize)]
struct Record {
    schema: u32,
    next: u64,
    hash: Option<String>,
    size: u64,
}

impl Head {
    /// Reads the record, or nothing if there is none that makes sense.
    pub(super) fn read(file: &File) -> io::Result<Option<Self>> {
        let mut buffer = [0; WIDTH + 1];
        let mut filled = 0;
        while filled < buffer.len() {
            match file.read_at(&mut buffer[filled..], filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        let record = serde_json::from_slice::<Record>(&buffer[..filled]).ok();
        Ok(record
            .filter(|record| record.schema == SCHEMA)
            .map(|record| Self { link: Link { seq: record.next, prev: record.hash }, size: record.size }))
    }

    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let Link { seq, prev } = &self.link;
        let record = Record { schema: SCHEMA, next: *seq, hash: prev.clone(), size: self.size };
        let text = serde_json::to_string(&record)?;
        file.write_all_at(format!("{text:<WIDTH$}\n").as_bytes(), 0)
    }
}
