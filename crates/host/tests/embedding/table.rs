//! The results as the table that `cargo xtask prove` puts into the documentation.

use std::path::Path;

use serde_json::json;

use crate::Row;

pub fn write(path: &Path, rows: &[Row]) {
    let table = json!({
        "title": "Embedding in every form of main",
        "columns": ["form", "runs", "passed", "slowest run"],
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "failed": rows.iter().filter(|row| row.failed > 0).count(),
        "notes": [
            "A run starts the program, whose host starts a server with daemons in other sessions, and calls a tool. Every \
             second run is killed with SIGKILL, the others close the host. A run passes if the program has exactly one \
             child, the guard, and if no process of the server is left.",
        ],
    });
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    std::fs::write(path, table.to_string()).unwrap();
}

fn row(row: &Row) -> Vec<String> {
    let slowest = format!("{:.1} s", row.slowest.as_secs_f64());
    vec![row.form.title().to_owned(), row.runs.to_string(), (row.runs - row.failed).to_string(), slowest]
}
