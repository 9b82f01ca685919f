//! `cargo xtask prove`: repeats the fault and process tests many times, and collects their tables in
//! `evidence/reliability.md`. [`gateway()`] does so for the gateway.

mod gateway;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use gateway::gateway;

use crate::peers;
use crate::run::{MachineDescription, TaskResult, cargo, parse_number, root, run, say, target};

/// A test binary that can repeat its cases and write its results as a table.
struct RepeatableTest {
    name: &'static str,
    package: &'static str,
    test: &'static str,
    /// Filter of its cases.
    filter: Option<&'static str>,
    /// Runs per case; for `memory`, the number of seconds.
    runs: usize,
}

const REPEATABLE_TESTS: [RepeatableTest; 8] = [
    RepeatableTest { name: "faults", package: "wharf-client", test: "faults", filter: Some("/stdio/"), runs: 20 },
    RepeatableTest { name: "http", package: "wharf-client", test: "faults", filter: Some("/http/"), runs: 20 },
    RepeatableTest { name: "sse", package: "wharf-client", test: "faults", filter: Some("/sse/"), runs: 20 },
    RepeatableTest { name: "processes", package: "wharf-cli", test: "ends", filter: None, runs: 5 },
    RepeatableTest { name: "config", package: "wharf-config", test: "torture", filter: None, runs: 20 },
    RepeatableTest { name: "auth", package: "wharf-auth", test: "torture", filter: None, runs: 20 },
    RepeatableTest { name: "memory", package: "wharf", test: "memory", filter: None, runs: 6 },
    RepeatableTest { name: "embedding", package: "wharf", test: "embedding", filter: None, runs: 100 },
];

pub fn prove(words: &[&str]) -> TaskResult {
    let (which, runs) = parse(words)?;
    let tables = target().join("reliability");
    fs::create_dir_all(&tables)?;
    // These need no third-party SDKs.
    let is_alone = ["embedding", "memory"].contains(&which);
    let home = if is_alone { target().join("peers") } else { peers::install()? };
    let mut failures = Vec::new();
    for proof in REPEATABLE_TESTS.iter().filter(|proof| which == "all" || which == proof.name) {
        if let Err(failure) = repeat(proof, runs.unwrap_or(proof.runs), &tables, &home) {
            say!("{failure}");
            failures.push(proof.name);
        }
    }
    let page = page(&tables)?;
    fs::write(root().join("evidence/reliability.md"), page)?;
    say!("wrote evidence/reliability.md");
    if failures.is_empty() { Ok(()) } else { Err(format!("failed: {}", failures.join(", ")).into()) }
}

fn parse<'a>(words: &[&'a str]) -> TaskResult<(&'a str, Option<usize>)> {
    let (mut which, mut runs) = ("all", None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--runs" => runs = Some(parse_number("--runs", words.next())?),
            name if name == "all" || REPEATABLE_TESTS.iter().any(|proof| proof.name == name) => which = name,
            other => {
                return Err(format!(
                    "prove: expected faults, http, sse, processes, config, auth, memory, embedding or all, not {other}"
                )
                .into());
            }
        }
    }
    Ok((which, runs))
}

fn repeat(proof: &RepeatableTest, runs: usize, tables: &Path, home: &Path) -> TaskResult {
    let table = tables.join(format!("{}.json", proof.name));
    // Remove an old table, so that it is not taken for a new one.
    let _ = fs::remove_file(&table);
    let mut command = cargo();
    command.args(["test", "--package", proof.package, "--test", proof.test, "--"]);
    command.args(proof.filter).args(["--runs", &runs.to_string(), "--table"]).arg(&table);
    let outcome = run(command.env("WHARF_PEERS", home));
    if !table.is_file() {
        outcome?;
        return Err(format!("{} wrote no table", proof.name).into());
    }
    add_date_note(&table, proof)?;
    outcome
}

/// Records date and command in a table: a later run may refresh only some tables.
fn add_date_note(table: &Path, proof: &RepeatableTest) -> TaskResult {
    let mut value: Value = serde_json::from_str(&fs::read_to_string(table)?)?;
    let note = format!("Measured on {} with `cargo xtask prove {}`.", MachineDescription::detect().date, proof.name);
    if let Some(notes) = value["notes"].as_array_mut() {
        notes.push(note.into());
    }
    Ok(fs::write(table, value.to_string())?)
}

fn page(tables: &Path) -> TaskResult<String> {
    let here = MachineDescription::detect();
    let mut page = format!(
        "# Reliability\n\n\
         Faults injected into Wharf, the number of runs and the results. Linux {}, {} cores. Each table states its date \
         and its command.\n",
        here.kernel, here.cores,
    );
    for path in sorted_tables(tables)? {
        let text = fs::read_to_string(&path)?;
        let table = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        page.push_str(&section(&table));
    }
    Ok(page)
}

fn sorted_tables(tables: &Path) -> TaskResult<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(tables)? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    Ok(paths)
}

/// Formats one table, written by a test binary as `{title, columns, rows, failed, notes}`.
pub fn section(table: &Value) -> String {
    let list = |name: &str| table[name].as_array().cloned().unwrap_or_default();
    let (columns, rows) = (list("columns"), list("rows"));
    let mut text = format!("\n## {}\n\n", table["title"].as_str().unwrap_or("Untitled"));
    push_row(&mut text, &columns);
    let rules = vec![Value::from("---"); columns.len()];
    push_row(&mut text, &rules);
    for row in &rows {
        push_row(&mut text, row.as_array().map_or(&[], Vec::as_slice));
    }
    let failed = table["failed"].as_u64().unwrap_or(0);
    let _ = writeln!(text, "\nRows: {}, failed: {failed}.", rows.len());
    for note in list("notes") {
        let _ = writeln!(text, "\n{}", note.as_str().unwrap_or_default());
    }
    text
}

fn push_row(text: &mut String, cells: &[Value]) {
    for cell in cells {
        let cell = cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
        let _ = write!(text, "| {} ", cell.replace('|', "\\|").replace('\n', " "));
    }
    text.push_str("|\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn table_is_rendered_as_markdown() {
        let table = json!({
            "title": "Faults",
            "columns": ["fault", "runs"],
            "rows": [["dies | twice", 20]],
            "failed": 0,
            "notes": ["Each on its own."],
        });
        let expected = "\n## Faults\n\n| fault | runs |\n| --- | --- |\n| dies \\| twice | 20 |\n\
                        \nRows: 1, failed: 0.\n\nEach on its own.\n";
        assert_eq!(section(&table), expected);
    }

    #[test]
    fn arguments_are_parsed() {
        assert_eq!(parse(&[]).unwrap(), ("all", None));
        assert_eq!(parse(&["processes", "--runs", "3"]).unwrap(), ("processes", Some(3)));
        assert_eq!(parse(&["config"]).unwrap(), ("config", None));
        assert_eq!(parse(&["auth"]).unwrap(), ("auth", None));
        assert_eq!(parse(&["memory"]).unwrap(), ("memory", None));
        assert_eq!(parse(&["embedding"]).unwrap(), ("embedding", None));
        assert!(parse(&["--runs"]).is_err());
        assert!(parse(&["everything"]).is_err());
    }
}
