//! Counts and prints the results, and writes them as a table.

use std::path::Path;

use serde_json::json;

use crate::{CaseOutcome, CaseResult};

pub struct CaseReport {
    rows: Vec<[String; 2]>,
    passed: usize,
    failed: usize,
    not_run: usize,
    /// On CI a missing tool is a failure.
    is_ci: bool,
}

impl CaseReport {
    pub fn new(is_ci: bool) -> Self {
        Self { rows: Vec::new(), passed: 0, failed: 0, not_run: 0, is_ci }
    }

    pub fn add(&mut self, name: &str, result: CaseResult) {
        let text = match result {
            Ok(CaseOutcome::Passed(details)) => {
                self.passed += 1;
                if details.is_empty() { "ok".to_owned() } else { format!("ok: {details}") }
            }
            Ok(CaseOutcome::NotRun(reason)) if !self.is_ci => {
                self.not_run += 1;
                format!("not run: {reason}")
            }
            Ok(CaseOutcome::NotRun(reason)) | Err(reason) => {
                self.failed += 1;
                format!("FAILED: {reason}")
            }
        };
        println!("test packages/{name} ... {text}");
        self.rows.push([name.replace('_', " "), text]);
    }

    /// Prints the summary and returns the exit code.
    pub fn finish(&self) -> i32 {
        let verdict = if self.failed == 0 { "ok" } else { "FAILED" };
        println!(
            "\ntest result: {verdict}. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out",
            self.passed, self.failed, self.not_run
        );
        i32::from(self.failed > 0 || self.rows.is_empty())
    }

    pub fn write_table(&self, path: &Path) {
        let table = json!({
            "title": "Packages",
            "columns": ["case", "result"],
            "rows": self.rows,
            "failed": self.failed,
            "notes": [],
        });
        std::fs::write(path, table.to_string()).unwrap();
    }
}
