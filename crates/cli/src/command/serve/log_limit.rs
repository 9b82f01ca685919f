//! Keeps the log of a gateway in the background short.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

/// Maximum bytes of the log. It may grow beyond it until the next check.
const MAX_LOG_BYTES: u64 = 1 << 20;
/// Interval of checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Shortens the log at this path, which is the standard error of this process, whenever it is too long. Never returns.
pub async fn limit_log(path: &Path) {
    let Ok(log) = io::stderr().as_fd().try_clone_to_owned().map(File::from) else {
        return std::future::pending().await;
    };
    loop {
        // A log that cannot be shortened is still a log.
        let _ = shorten(&log, path, MAX_LOG_BYTES);
        sleep(CHECK_INTERVAL).await;
    }
}

/// Leaves the last half of the maximum of a log that is too long. Writers append to it meanwhile.
fn shorten(mut log: &File, path: &Path, max_bytes: u64) -> io::Result<()> {
    let written = log.metadata()?;
    if !written.is_file() || written.len() <= max_bytes {
        return Ok(());
    }
    let mut named = File::open(path)?;
    let is_same = named.metadata().is_ok_and(|found| (found.dev(), found.ino()) == (written.dev(), written.ino()));
    let mut rest = Vec::new();
    if is_same {
        named.seek(SeekFrom::Start(written.len() - max_bytes / 2))?;
        named.take(max_bytes).read_to_end(&mut rest)?;
    }
    log.set_len(0)?;
    // Begins with a whole line.
    let start = rest.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    log.write_all(&rest[start..])
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn long_log_keeps_its_last_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let mut other = OpenOptions::new().append(true).open(&path).unwrap();
        for number in 0..1000 {
            writeln!(log, "line {number}").unwrap();
        }
        shorten(&log, &path, 20_000).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("line 0\n"), "short enough");
        shorten(&log, &path, 1000).unwrap();
        writeln!(other, "after").unwrap();
        writeln!(log, "last").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.len() < 600 && text.ends_with("line 999\nafter\nlast\n"), "{text}");
        assert!(text.lines().all(|line| line.starts_with("line ") || line == "after" || line == "last"), "{text}");
    }
}
