//! Follows log files while other processes write and rotate them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use wharf::{LogLine, LogSource, log_file_name};

/// One log line and its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Empty if unknown.
    pub time: String,
    pub server: String,
    pub source: LogSource,
    pub text: String,
}

/// Read positions in the log files of one server or of all.
pub struct LogTails {
    folder: PathBuf,
    only: Option<String>,
    tails: BTreeMap<String, LogTail>,
}

/// Returns the servers that have a log file, sorted.
pub fn servers_with_logs(folder: &Path) -> Vec<String> {
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = files.flatten().filter_map(|file| file.file_name().into_string().ok());
    let mut servers: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".log")?.to_owned())).collect();
    servers.sort();
    servers
}

impl LogTails {
    pub fn new(folder: PathBuf, only: Option<String>) -> Self {
        Self { folder, only, tails: BTreeMap::new() }
    }

    /// Returns the lines added since the last call, sorted by time. The first call returns all lines.
    pub fn read_new(&mut self) -> Vec<LogEntry> {
        let servers = self.only.clone().map_or_else(|| servers_with_logs(&self.folder), |only| vec![only]);
        let mut entries = Vec::new();
        for server in servers {
            let path = self.folder.join(log_file_name(&server));
            let tail = self.tails.entry(server.clone()).or_insert_with(|| LogTail::new(path));
            let lines = tail.read_new();
            entries.extend(
                lines.iter().filter_map(|line| LogLine::parse(line)).map(|line| LogEntry::from_line(&server, line)),
            );
        }
        entries.sort_by(|one, other| one.time.cmp(&other.time));
        entries
    }
}

impl LogEntry {
    pub fn known_time(&self) -> Option<&str> {
        Some(self.time.as_str()).filter(|time| !time.is_empty())
    }

    fn from_line(server: &str, line: LogLine<'_>) -> Self {
        let LogLine { time, voice: source, text } = line;
        Self { time: time.to_owned(), server: server.to_owned(), source, text: text.to_owned() }
    }
}

/// One log file. It stays open, so that after a rotation the old file is read to its end.
struct LogTail {
    path: PathBuf,
    file: Option<File>,
    /// Bytes of an incomplete last line.
    begun: Vec<u8>,
    /// True once the rotated file was read.
    has_begun: bool,
}

impl LogTail {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None, begun: Vec::new(), has_begun: false }
    }

    fn read_new(&mut self) -> Vec<String> {
        let mut bytes = std::mem::take(&mut self.begun);
        if !std::mem::replace(&mut self.has_begun, true) {
            let mut older = self.path.clone().into_os_string();
            older.push(".1");
            let _ = File::open(older).and_then(|mut file| file.read_to_end(&mut bytes));
        }
        // Ignore errors: the next call tries again.
        let _ = self.read(&mut bytes);
        let complete_bytes = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.begun = bytes.split_off(complete_bytes);
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }

    fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.read_to_end(bytes)?;
            if is_same(file, &self.path)? {
                return Ok(());
            }
            // Read lines added between the read and the check.
            file.read_to_end(bytes)?;
        }
        let file = self.file.insert(File::open(&self.path)?);
        file.read_to_end(bytes).map(drop)
    }
}

fn is_same(file: &File, path: &Path) -> io::Result<bool> {
    let (open, named) = (file.metadata()?, std::fs::metadata(path)?);
    Ok((open.dev(), open.ino()) == (named.dev(), named.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn append(path: &Path, text: &str) {
        File::options().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn written(second: u32, text: &str) -> String {
        format!("2026-01-01T00:00:{second:02}.000Z | {text}\n")
    }

    #[track_caller]
    fn check(tails: &mut LogTails, expected: &[&str]) {
        let shown: Vec<String> =
            tails.read_new().iter().map(|entry| format!("{} {}", entry.server, entry.text)).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn logs_are_merged_and_followed_across_rotation() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        append(&path("a.log.1"), &written(1, "one"));
        append(&path("a.log"), &(written(3, "three") + "no line at all\n"));
        append(&path("b.log"), &written(2, "two"));
        let mut tails = LogTails::new(folder.path().to_owned(), None);
        check(&mut tails, &["a one", "b two", "a three"]);
        check(&mut tails, &[]);
        let line = written(4, "four");
        append(&path("a.log"), &line[..30]);
        check(&mut tails, &[]);
        append(&path("a.log"), &line[30..]);
        append(&path("a.log"), &written(5, "five"));
        std::fs::rename(path("a.log"), path("a.log.1")).unwrap();
        append(&path("a.log"), &written(6, "six"));
        append(&path("c.log"), &written(7, "seven"));
        check(&mut tails, &["a four", "a five", "a six", "c seven"]);
        std::fs::remove_file(path("a.log")).unwrap();
        check(&mut tails, &[]);
        check(&mut LogTails::new(folder.path().to_owned(), Some("b".to_owned())), &["b two"]);
        check(&mut LogTails::new(path("nowhere"), None), &[]);
        assert_eq!(servers_with_logs(folder.path()), ["b", "c"]);
    }
}
