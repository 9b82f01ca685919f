//! What was seen, as the table that `cargo xtask prove` puts into the documentation, and the file it was seen on.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::Row;

/// A file with comments wherever they can be lost.
pub const TEXT: &str = r#"// A file of mine.
{
  // Before everything.
  "model": "some", // beside a value
  "mcpServers": {
    // About the first.
    "first": {"command": "first"} // without a comma
    // After the last.
  },
  // Before the end.
  "unknown": [1, 2, 3]
}
// After everything.
"#;

/// A process of this binary with another life.
pub fn writer(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("writer").args(words).stdin(Stdio::null());
    command
}

/// What a file holds, if it is whole and has all of its comments.
pub fn whole(text: &str) -> Option<Value> {
    let mut comments = TEXT.lines().filter_map(comment);
    if !comments.all(|comment| text.contains(comment)) {
        return None;
    }
    let plain: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    serde_json::from_str(&plain.join("\n")).ok()
}

fn comment(line: &str) -> Option<&str> {
    line.find("//").map(|start| &line[start..])
}

pub fn write(path: &Path, rows: &[Row]) {
    let table = json!({
        "title": "Configuration files survive their writers",
        "columns": ["what", "times", "lost", "torn", "held up by a lock", "left behind", "took"],
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "failed": rows.iter().filter(|row| !row.is_good()).count(),
        "notes": [
            "Lost: an edit that was reported and is not in the file. Torn: a file that cannot be read, or lacks one of \
             the comments it began with. Held up: the next edit did not get the lock within two seconds. Left behind: \
             files beside the file after the next edit.",
        ],
    });
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    std::fs::write(path, table.to_string()).unwrap();
}

fn row(row: &Row) -> Vec<String> {
    let tally = row.tally;
    let counts = [row.times, tally.lost, tally.torn, tally.held_up, tally.left].map(|count| count.to_string());
    let took = format!("{:.0} s", row.took.as_secs_f64());
    [row.what.clone()].into_iter().chain(counts).chain([took]).collect()
}
