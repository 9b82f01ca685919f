//! An entry that stands in no file yet, read as if it did.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use wharf_spec::ServerName;

use crate::checked::Fault;
use crate::entry::{self, Said};
use crate::format::{Format, read};
use crate::tree::Unreadable;
use crate::{Described, Place, Problem, Severity};

/// An entry as it would be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// What it is, or what is wrong with it.
    pub described: Result<Described, Vec<Problem>>,
    /// Whether it is switched on.
    pub enabled: bool,
    /// What is odd about it but costs nothing.
    pub warnings: Vec<Problem>,
}

/// Reads an entry of this server as if it stood in a file, for whoever is about to write it there. Places in what is
/// wrong are in the entry as compact JSON, and of little use.
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
            let problems = vec![problem(&Fault::new("unreadable", at, text), Severity::Error)];
            return Draft { described: Err(problems), enabled: true, warnings: Vec::new() };
        }
    };
    let read = entry::read(name.as_str(), &node, &file, true);
    let bad = |faults: &[Fault]| faults.iter().map(|fault| problem(fault, Severity::Error)).collect();
    let described = match read.said {
        Said::Server(described) => Ok(*described),
        Said::Bad(faults) => Err(bad(&faults)),
        Said::Off => Err(bad(&[Fault::new("no_transport", node.at, "it says only that it is off")])),
    };
    let warnings = read.warnings.iter().map(|fault| problem(fault, Severity::Warning)).collect();
    Draft { described, enabled: read.enabled, warnings }
}
