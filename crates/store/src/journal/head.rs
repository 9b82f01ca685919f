//! The head file: a record of the last line.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use super::line::{ChainLink, SCHEMA_VERSION};

/// Length of the record in bytes, without the line break. It is fixed, so that overwriting it allocates no disk space.
const RECORD_BYTES: usize = 191;

/// Link of the next line, and size of the current file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalHead {
    pub(super) link: ChainLink,
    pub(super) size: u64,
}

#[derive(Serialize, Deserialize)]
struct HeadRecord {
    schema: u32,
    next: u64,
    hash: Option<String>,
    size: u64,
}

impl JournalHead {
    /// Reads the record. Returns `None` if it is missing or malformed.
    pub(super) fn read(file: &File) -> io::Result<Option<Self>> {
        let mut buffer = [0; RECORD_BYTES + 1];
        let mut filled = 0;
        while filled < buffer.len() {
            match file.read_at(&mut buffer[filled..], filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        let record = serde_json::from_slice::<HeadRecord>(&buffer[..filled]).ok();
        Ok(record
            .filter(|record| record.schema == SCHEMA_VERSION)
            .map(|record| Self { link: ChainLink { seq: record.next, prev: record.hash }, size: record.size }))
    }

    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let ChainLink { seq, prev } = &self.link;
        let record = HeadRecord { schema: SCHEMA_VERSION, next: *seq, hash: prev.clone(), size: self.size };
        let text = serde_json::to_string(&record)?;
        file.write_all_at(format!("{text:<RECORD_BYTES$}\n").as_bytes(), 0)
    }
}
