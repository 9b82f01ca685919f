//! Reading the entries of a journal without verification.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::files::JournalFiles;

/// Maximum length of a line in bytes. Longer lines are skipped.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Calls `each` with every entry of a journal, in all retained files, oldest first. Returns the number of lines skipped
/// because they are unfinished, too long or not journal lines.
///
/// Takes no lock: entries appended during the read may or may not be seen. Does not verify the hash chain; see
/// [`verify_journal`](super::verify_journal). A journal that does not exist has no entries.
pub fn for_each_entry(path: &Path, mut each: impl FnMut(&str)) -> io::Result<u64> {
    let files = match JournalFiles::open_existing(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        files => files?,
    };
    let mut skipped = 0;
    for name in files.file_names()? {
        if let Some(file) = files.open_for_reading(&name)? {
            // Bounded by the size at open, so that a fast writer cannot keep the reader busy forever.
            let size = file.metadata()?.len();
            skipped += read_entries(BufReader::new(file.take(size)), &mut each)?;
        }
    }
    Ok(skipped)
}

fn read_entries(mut reader: impl BufRead, each: &mut impl FnMut(&str)) -> io::Result<u64> {
    #[derive(Deserialize)]
    struct EntryOnly<'a> {
        #[serde(borrow)]
        entry: &'a RawValue,
    }
    let (mut line, mut skipped) = (Vec::new(), 0);
    loop {
        line.clear();
        if reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(skipped);
        }
        match serde_json::from_slice::<EntryOnly<'_>>(&line) {
            Ok(text) if line.ends_with(b"\n") => each(text.entry.get()),
            _ => {
                skipped += 1;
                if !line.ends_with(b"\n") {
                    reader.skip_until(b'\n')?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Journal, JournalOptions};
    use super::*;
    use crate::scratch_dir::ScratchDir;

    #[test]
    fn all_files_are_read_and_malformed_lines_skipped() {
        let scratch = ScratchDir::new();
        let path = scratch.path("audit.jsonl");
        assert_eq!(for_each_entry(&path, |_| panic!("there is none")).unwrap(), 0);
        let journal = Journal::open(&path, JournalOptions { max_bytes: 400, keep_files: 9 }).unwrap();
        for n in 0..20 {
            journal.append(&n).unwrap();
        }
        let mut found = Vec::new();
        let mut read = |path: &Path| for_each_entry(path, |entry| found.push(entry.parse::<u32>().unwrap()));
        assert_eq!(read(&path).unwrap(), 0);
        let mut text = std::fs::read(&path).unwrap();
        text.extend(b"garbage\n");
        text.extend(vec![b'x'; 3 << 20]);
        text.extend(b"\n{\"seq\":99,\"prev\":null,\"entry\":20}\n{\"seq\":100,\"prev\":null,\"entry\":21}");
        std::fs::write(&path, text).unwrap();
        assert_eq!(read(&path).unwrap(), 3);
        assert_eq!(found, (0..20).chain(0..=20).collect::<Vec<_>>());
    }
}
