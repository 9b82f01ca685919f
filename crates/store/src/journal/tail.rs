//! The end of the chain: the link of the next line and the file to append to.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::error::JournalAppendError;
use super::files::JournalFiles;
use super::head::JournalHead;
use super::line::{ChainLink, LineRecord};
use crate::path_safety::check_private_file;

pub(super) struct JournalTail {
    pub(super) file: File,
    pub(super) size: u64,
    pub(super) link: ChainLink,
    /// Size of the unfinished line that was just moved aside, in bytes.
    pub(super) torn: u64,
}

impl JournalTail {
    /// Finds the end of the chain, and repairs the file if a crash interrupted the last write. The caller holds the
    /// lock.
    pub(super) fn find(files: &JournalFiles, head: &File) -> Result<Self, JournalAppendError> {
        let failed = |error| files.append_error(error);
        let file = files.open_current().map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        check_private_file(&files.path(), &metadata)?;
        match JournalHead::read(head).map_err(failed)? {
            Some(JournalHead { link, size }) if size == metadata.len() => Ok(Self { file, size, link, torn: 0 }),
            head => Self::recover(files, file, head).map_err(failed),
        }
    }

    /// Moves the end behind a line, which is written later.
    pub(super) fn advance(&mut self, line: &[u8]) {
        self.size += line.len() as u64;
        self.link = self.link.next(&line[..line.len() - 1]);
        self.torn = 0;
    }

    fn recover(files: &JournalFiles, mut file: File, head: Option<JournalHead>) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let (lines, fragment) = bytes.split_at(whole);
        let link = match head {
            Some(JournalHead { link, size }) => link_after_head(link, size, lines),
            None => match link_after_last_line(lines) {
                Some(link) => link,
                None => link_after_newest_full_file(files)?,
            },
        };
        if !fragment.is_empty() {
            files.save_torn_fragment(fragment)?;
            file.set_len(whole as u64)?;
        }
        Ok(Self { file, size: whole as u64, link, torn: fragment.len() as u64 })
    }
}

/// Returns the link after the head and the valid lines written after it.
///
/// Lines that do not continue the chain are skipped. The next line continues from the head, so that verification still
/// detects a gap.
fn link_after_head(mut link: ChainLink, size: u64, lines: &[u8]) -> ChainLink {
    let written = usize::try_from(size).ok().and_then(|size| lines.get(size..)).unwrap_or_default();
    for line in written.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if LineRecord::parse(line).is_some_and(|record| record.link() == link) {
            link = link.next(line);
        }
    }
    link
}

/// Returns the link after the last line of a file without a head.
fn link_after_last_line(lines: &[u8]) -> Option<ChainLink> {
    let lines = lines.strip_suffix(b"\n")?;
    let line = lines.rsplit(|&byte| byte == b'\n').next()?;
    Some(LineRecord::parse(line)?.link().next(line))
}

fn link_after_newest_full_file(files: &JournalFiles) -> io::Result<ChainLink> {
    let Some(name) = files.newest_full_file()? else { return Ok(ChainLink::default()) };
    let Some(mut file) = files.open_for_reading(&name)? else { return Ok(ChainLink::default()) };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(link_after_last_line(&bytes).unwrap_or_default())
}
