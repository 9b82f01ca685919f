//! Input history in a file readable by the user only: one JSON string per line.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use wharf_store::LogFile;

/// Maximum bytes of each of the two files.
const MAX_FILE_BYTES: u64 = 256 << 10;
/// Maximum bytes of a line in the history.
const MAX_LINE_BYTES: usize = 16 << 10;

/// The history file.
pub struct HistoryFile {
    path: PathBuf,
    file: LogFile,
}

impl HistoryFile {
    /// Opens the file and creates it if missing.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: LogFile::open(path, MAX_FILE_BYTES)? })
    }

    /// Returns the lines, oldest first.
    pub fn load(&self) -> Vec<String> {
        let mut older = self.path.clone().into_os_string();
        older.push(".1");
        [Path::new(&older), &self.path].into_iter().flat_map(read_lines).collect()
    }

    /// Appends a line. Overlong lines are not recorded.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        if line.len() > MAX_LINE_BYTES {
            return Ok(());
        }
        self.file.append(&serde_json::to_string(line)?)
    }
}

/// Reads the lines of a file and skips incomplete ones.
fn read_lines(path: &Path) -> Vec<String> {
    let mut bytes = Vec::new();
    // A read error means fewer lines; it is not reported.
    let _ = File::open(path).and_then(|file| file.take(2 * MAX_FILE_BYTES).read_to_end(&mut bytes));
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn history_is_private_and_ordered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/history");
        let mut history = HistoryFile::open(&path).unwrap();
        for line in ["one", "two\nlines \u{1b}[2J"] {
            history.append(line).unwrap();
        }
        history.append(&"x".repeat(MAX_LINE_BYTES + 1)).unwrap();
        assert_eq!(HistoryFile::open(&path).unwrap().load(), ["one", "two\nlines \u{1b}[2J"]);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn history_file_is_size_limited() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/history");
        let mut history = HistoryFile::open(&path).unwrap();
        for number in 0..60 {
            history.append(&format!("{number} {}", "x".repeat(MAX_LINE_BYTES - 10))).unwrap();
        }
        let lines = history.load();
        assert!(lines.len() < 40 && lines.last().unwrap().starts_with("59 "), "{}", lines.len());
    }
}
