//! Reports a written server entry.

use serde::Serialize;
use serde_json::{Map, Value};
use wharf_config::edit::ConfigChange;
use wharf_config::{Config, Layer, load};
use wharf_spec::{ServerName, repository_root};

use crate::command::configuration::undo::{add_json_command, shell_quote};
use crate::masking::literal_secrets;
use wharf_terminal::config_context::home_directory;
use wharf_terminal::config_scope::{ConfigScope, WrittenEntry};
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::Failure;
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{GOOD, NAME, QUIET, paint};

/// A server entry that was written.
pub struct AddedEntry<'a> {
    pub name: &'a ServerName,
    pub entry: &'a Map<String, Value>,
    pub written: &'a WrittenEntry,
    pub scope: ConfigScope,
}

#[derive(Serialize)]
struct AddDocument<'a> {
    success: bool,
    id: &'a str,
    action: &'static str,
    source: &'static str,
    file: String,
    undo: String,
    next: String,
    warnings: Vec<String>,
}

/// Reports the change, how to undo it, and the next step.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn report_added(session: &CommandSession, added: &AddedEntry<'_>) -> Result<(), Failure> {
    let AddedEntry { name, written, scope, .. } = added;
    let (action, word) = match written.change {
        ConfigChange::Replaced(_) => ("replaced", "Replaced"),
        ConfigChange::Unchanged => ("unchanged", "No change to"),
        _ => ("added", "Added"),
    };
    let warnings = warnings(session, added);
    let (undo, next) = (added.undo(), format!("wharf test {name}"));
    if session.console.mode.json {
        let file = written.file.display().to_string();
        let source = scope.layer().source();
        let id = name.as_str();
        return session
            .console
            .print_document(true, &AddDocument { success: true, id, action, source, file, undo, next, warnings });
    }
    for warning in &warnings {
        session.console.warn(warning);
    }
    let file = display_path(&written.file, &session.environment);
    let source = scope.layer().source();
    session.console.say(format_args!("{} {} in {file} ({source})", paint(GOOD, word), paint(NAME, name)));
    if scope.layer() == Layer::Project {
        let label = paint(QUIET, "scope:");
        session.console.say(format_args!("  {label} {}; --scope global adds it for all directories", reach(session)));
    }
    session.console.say(format_args!("  {} {undo}", paint(QUIET, "undo:")));
    session.console.say(format_args!("  {} {next}", paint(QUIET, "next:")));
    Ok(())
}

/// Returns the directories in which the project's servers are found.
fn reach(session: &CommandSession) -> String {
    let project = &session.configuration.places.project;
    let shown = display_path(project, &session.environment);
    match repository_root(project, home_directory(&session.environment).as_deref()) {
        Some(_) => format!("{shown} and its subdirectories"),
        None => format!("{shown} only"),
    }
}

impl AddedEntry<'_> {
    fn undo(&self) -> String {
        let scope = if self.scope == ConfigScope::Global { " --scope global" } else { "" };
        match &self.written.change {
            _ if self.is_switch() => format!("wharf enable {}", shell_quote(self.name.as_str())),
            ConfigChange::Replaced(Value::Object(old)) => {
                add_json_command(self.name, old, &format!("--replace{scope}"))
            }
            _ => format!("wharf remove {}{scope}", shell_quote(self.name.as_str())),
        }
    }

    /// Reports whether the entry only disables a server of a lower layer.
    fn is_switch(&self) -> bool {
        self.entry.len() == 1 && self.entry.get("enabled") == Some(&Value::Bool(false))
    }
}

fn warnings(session: &CommandSession, added: &AddedEntry<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let secrets = literal_secrets(added.entry);
    if added.scope.layer().needs_approval() && !secrets.is_empty() {
        warnings.push(format!(
            "a file that others may read holds a secret in clear text ({}); use ${{VARIABLE}} instead, or \
             ${{secret:NAME}} after wharf secret set NAME",
            secrets.join(", ")
        ));
    }
    let config = load(&session.configuration.places, &session.environment);
    warnings.extend(shadowing_warning(session, added, &config));
    warnings
}

/// Returns a warning if an entry of the same name in another layer takes precedence or is now overridden.
fn shadowing_warning(session: &CommandSession, added: &AddedEntry<'_>, config: &Config) -> Option<String> {
    let shown = |server: &wharf_config::ConfiguredServer| {
        format!("{}:{}", display_path(&server.place.file, &session.environment), server.place.at.line)
    };
    let name = added.name;
    let counts = config.server(name.as_str()).filter(|_| !added.is_switch())?;
    if *counts.place.file != *added.written.file {
        return Some(format!("the `{name}` of {} is still in effect: its layer takes precedence", shown(counts)));
    }
    let lower = config.beside.iter().filter(|other| other.name == *name).max_by_key(|other| other.layer)?;
    Some(format!("it replaces the `{name}` of {}", shown(lower)))
}
