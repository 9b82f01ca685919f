//! Where the chain ends: what the next line follows, and the file it goes into.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::error::AppendError;
use super::files::Files;
use super::head::Head;
use super::line::{Link, Record};
use crate::privacy::check_file;

pub(super) struct Tail {
    pub(super) file: File,
    pub(super) size: u64,
    pub(super) link: Link,
    /// How much of an unfinished line was moved aside just now.
    pub(super) torn: u64,
}

impl Tail {
    /// Finds the end; heals the file if whoever wrote last did not get to its end. Called by who holds the lock.
    pub(super) fn find(files: &Files, head: &File) -> Result<Self, AppendError> {
        let failed = |error| files.unwritten(error);
        let file = files.open_current().map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        check_file(&files.path(), &metadata)?;
        match Head::read(head).map_err(failed)? {
            Some(Head { link, size }) if size == metadata.len() => Ok(Self { file, size, link, torn: 0 }),
            head => Self::recover(files, file, head).map_err(failed),
        }
    }

    fn recover(files: &Files, mut file: File, head: Option<Head>) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let (lines, fragment) = bytes.split_at(whole);
        let link = match head {
            Some(Head { link, size }) => after_head(link, size, lines),
            None => match last_link(lines) {
                Some(link) => link,
                None => last_of_full(files)?,
            },
        };
        if !fragment.is_empty() {
            files.keep_torn(fragment)?;
            file.set_len(whole as u64)?;
        }
        Ok(Self { file, size: whole as u64, link, torn: fragment.len() as u64 })
    }
}

/// What follows the head and the lines that were written after it.
///
/// Lines that do not follow are passed over, and so are lines that are missing: the next one follows what the head
/// says, and the gap stays to be seen.
fn after_head(mut link: Link, size: u64, lines: &[u8]) -> Link {
    let written = usize::try_from(size).ok().and_then(|size| lines.get(size..)).unwrap_or_default();
    for line in written.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if Record::parse(line).is_some_and(|record| record.link() == link) {
            link = link.next(line);
        }
    }
    link
}

/// What follows the last line of a file whose head is lost.
fn last_link(lines: &[u8]) -> Option<Link> {
    let lines = lines.strip_suffix(b"\n")?;
    let line = lines.rsplit(|&byte| byte == b'\n').next()?;
    Some(Record::parse(line)?.link().next(line))
}

fn last_of_full(files: &Files) -> io::Result<Link> {
    let Some(name) = files.newest()? else { return Ok(Link::default()) };
    let Some(mut file) = files.read(&name)? else { return Ok(Link::default()) };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(last_link(&bytes).unwrap_or_default())
}
