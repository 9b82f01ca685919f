//! What was seen, as the table that `cargo xtask prove` puts into the documentation.

use std::path::Path;

use serde_json::json;

use crate::Row;

pub fn write(path: &Path, rows: &[Row]) {
    let table = json!({
        "title": "Logins survive being renewed",
        "columns": [
            "what", "times", "exchanges", "presented twice", "logins", "of those accounted for", "torn", "failed",
            "left behind", "took",
        ],
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "failed": rows.iter().filter(|row| !row.is_good()).count(),
        "notes": [
            "The authorization server takes every refresh token once. Presented twice: a refresh token that was shown \
             again while the first time was under way, or after what came of it had been kept. Accounted for: logins \
             that were needed because a process was killed after the server had exchanged its refresh token and \
             before the new one was on the disk, by the server's own count. Torn: a file that could not be read \
             after a kill. Left behind: files beside the file in the end.",
        ],
    });
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    std::fs::write(path, table.to_string()).unwrap();
}

fn row(row: &Row) -> Vec<String> {
    let tally = row.tally;
    let logins = tally.logins + tally.accounted;
    let counts =
        [row.times, tally.rotations, tally.doubles, logins, tally.accounted, tally.torn, tally.failed, tally.left];
    let took = format!("{:.0} s", row.took.as_secs_f64());
    let counts = counts.iter().map(ToString::to_string);
    [row.what.clone()].into_iter().chain(counts).chain([took]).collect()
}
