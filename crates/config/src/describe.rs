//! Validation of an entry that is not stored in a file yet.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use wharf_spec::ServerName;

use crate::checked::Fault;
use crate::entry::{self, Said};
use crate::format::{Format, read};
use crate::tree::Unreadable;
use crate::{Described, Place, Problem, ProblemSeverity};

/// The result of validating an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The parsed definition, or the problems that make it invalid.
    pub described: Result<Described, Vec<Problem>>,
    /// Set if the server is enabled.
    pub enabled: bool,
    /// Problems that do not make the entry invalid.
    pub warnings: Vec<Problem>,
}

/// Validates an entry before it is written to a file. Positions of problems refer to the entry as compact JSON.
pub fn describe(name: &ServerName, written: &Map<String, Value>) -> Draft {
    let file: Arc<Path> = Arc::from(Path::new(name.as_str()));
    let problem = |fault: &Fault, severity| Problem {
        code: fault.code,
        severity,
        place: Some(Place { file: Arc::clone(&file), at: fault.at }),
        server: Some(name.to_string()),
        text: fault.text.clone(),
        fix: fault.fix.clone(),
    };
    let node = match read(&Value::Object(written.clone()).to_string(), Format::Json) {
        Ok(node) => node,
        Err(Unreadable { at, text }) => {
            let problems = vec![problem(&Fault::new("unreadable", at, text), ProblemSeverity::Error)];
            return Draft { described: Err(problems), enabled: true, warnings: Vec::new() };
        }
    };
    let read = entry::read(name.as_str(), &node, &file, true);
    let bad = |faults: &[Fault]| faults.iter().map(|fault| problem(fault, ProblemSeverity::Error)).collect();
    let described = match read.said {
        Said::Server(described) => Ok(*described),
        Said::Bad(faults) => Err(bad(&faults)),
        Said::Off => Err(bad(&[Fault::new("no_transport", node.at, "it says only that it is off")])),
    };
    let warnings = read.warnings.iter().map(|fault| problem(fault, ProblemSeverity::Warning)).collect();
    Draft { described, enabled: read.enabled, warnings }
}
