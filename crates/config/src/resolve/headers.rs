//! The program that prints the headers of a remote server.

use std::path::PathBuf;

use serde_json::{Map, Value};
use wharf_spec::{Environment, HeadersSource, Secret, UntrustedText};

use super::EntryResolver;
use crate::secrets::SecretProgram;
use crate::server_definition::SourcedValue;
use crate::{ConfigProblem, StartDirectory};

/// Maximum number of headers.
const MAX_HEADERS: usize = 64;
/// Variables for the program of a project. A program of the user gets all variables, like `secretCommand`.
const PROJECT_VARIABLES: [&str; 7] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "SHELL"];

impl EntryResolver<'_> {
    /// Returns the source of headers that runs the command, if there is one.
    pub(super) fn headers_source(
        &self,
        command: &[SourcedValue<String>],
    ) -> Result<Option<HeadersSource>, ConfigProblem> {
        let Some((program, arguments)) = command.split_first() else { return Ok(None) };
        let program = PathBuf::from(self.program(program)?);
        let arguments = arguments.iter().map(|argument| self.text(argument)).collect::<Result<Vec<_>, _>>()?;
        let mut around = self.with.around.clone();
        let directory = match &self.site.start {
            StartDirectory::Project(path) => {
                around.env.retain(|(name, _)| PROJECT_VARIABLES.iter().any(|known| name == known));
                path.clone()
            }
            StartDirectory::Private(_) => PathBuf::from("/"),
        };
        let identity: Vec<&str> = command.iter().map(|word| word.value.as_str()).collect();
        Ok(Some(HeadersSource::new(identity.join("\0"), move || {
            load_headers(
                SecretProgram::new(program.clone(), arguments.clone()).with_directory(directory.clone()),
                &around,
            )
        })))
    }
}

/// Runs the program and parses its output. The error does not contain the output. Blocks.
fn load_headers(program: SecretProgram, around: &Environment) -> Result<Vec<(String, Secret)>, String> {
    let name = program.name();
    let output = program.run(around).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}")
    })?;
    parse_headers(output.reveal())
        .ok_or_else(|| format!("the output of `{}` is not a JSON object of strings", UntrustedText::new(name)))
}

fn parse_headers(output: &str) -> Option<Vec<(String, Secret)>> {
    let members: Map<String, Value> =
        serde_json::from_str(output).ok().filter(|map: &Map<_, _>| map.len() <= MAX_HEADERS)?;
    let header = |(name, value): (String, Value)| match value {
        Value::String(value) => Some((name, Secret::new(value))),
        _ => None,
    };
    members.into_iter().map(header).collect()
}
