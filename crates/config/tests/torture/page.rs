//! The file that is edited.

use std::process::{Command, Stdio};

use serde_json::Value;

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
