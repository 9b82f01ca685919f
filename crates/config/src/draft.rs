//! Validation of an entry that is not stored in a file yet.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use wharf_spec::ServerName;

use crate::entry::{self, EntryContent};
use crate::format::{FileFormat, parse_text};
use crate::tree::ParseFailure;
use crate::validate::ValidationFault;
use crate::{ConfigProblem, ProblemSeverity, ServerDefinition, SourceLocation};

/// The result of validating an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryDraft {
    /// The parsed definition, or the problems that make it invalid.
    pub described: Result<ServerDefinition, Vec<ConfigProblem>>,
    /// Set if the server is enabled.
    pub enabled: bool,
    /// Problems that do not make the entry invalid.
    pub warnings: Vec<ConfigProblem>,
}

/// Validates an entry before it is written to a file. Positions of problems refer to the entry as compact JSON.
pub fn validate_entry(name: &ServerName, written: &Map<String, Value>) -> EntryDraft {
    let file: Arc<Path> = Arc::from(Path::new(name.as_str()));
    let problem = |fault: &ValidationFault, severity| ConfigProblem {
        code: fault.code,
        severity,
        place: Some(SourceLocation { file: Arc::clone(&file), at: fault.at }),
        server: Some(name.to_string()),
        text: fault.text.clone(),
        fix: fault.fix.clone(),
    };
    let node = match parse_text(&Value::Object(written.clone()).to_string(), FileFormat::Json) {
        Ok(node) => node,
        Err(ParseFailure { at, text }) => {
            let problems = vec![problem(&ValidationFault::new("unreadable", at, text), ProblemSeverity::Error)];
            return EntryDraft { described: Err(problems), enabled: true, warnings: Vec::new() };
        }
    };
    let read = entry::parse_entry(name.as_str(), &node, &file, true);
    let bad = |faults: &[ValidationFault]| faults.iter().map(|fault| problem(fault, ProblemSeverity::Error)).collect();
    let described = match read.said {
        EntryContent::Server(described) => Ok(*described),
        EntryContent::Bad(faults) => Err(bad(&faults)),
        EntryContent::Off => {
            Err(bad(&[ValidationFault::new("no_transport", node.at, "the entry only disables a server")]))
        }
    };
    let warnings = read.warnings.iter().map(|fault| problem(fault, ProblemSeverity::Warning)).collect();
    EntryDraft { described, enabled: read.enabled, warnings }
}
