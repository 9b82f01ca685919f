//! Scopes of the configuration, and writing to them.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::ValueEnum;
use serde_json::{Map, Value};
use wharf_config::edit::{ConfigChange, ConfigFile, EditError, EditRefusal, EditedText, set_server};
use wharf_config::{ApprovalKey, ApprovalSubject, ConfigPaths, ConfiguredServer, Layer, ServerApproval, load};
use wharf_spec::ServerName;

use crate::approval::{approvals_failed, open_approvals};
use crate::failure::{Failure, FailureKind};
use crate::session::CommandSession;

/// Scope of a configuration change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfigScope {
    /// This project: .wharf/config.json
    Project,
    /// Your own configuration, for every project: config.json
    #[value(alias = "user")]
    Global,
    /// Claude's private project entries, which Wharf does not have; treated as the project scope
    #[value(hide = true)]
    Local,
}

/// A server entry to write.
#[derive(Clone, Copy)]
pub struct EntryWrite<'a> {
    pub name: &'a ServerName,
    pub entry: &'a Map<String, Value>,
    /// True to replace an existing entry, which is otherwise an error.
    pub replace: bool,
    /// True to approve the entry, if it needs approval.
    pub approve: bool,
}

/// A written entry.
pub struct WrittenEntry {
    pub file: PathBuf,
    pub change: ConfigChange,
}

impl ConfigScope {
    /// Returns the layer of this scope.
    pub fn layer(self) -> Layer {
        match self {
            Self::Project | Self::Local => Layer::Project,
            Self::Global => Layer::User,
        }
    }

    /// Reports whether a server is defined in this scope.
    pub fn holds(self, server: &ConfiguredServer) -> bool {
        server.layer.source() == self.layer().source()
    }
}

/// Writes a server, replacing an existing one, and returns the file. Approves it unless it is disabled.
///
/// # Errors
///
/// Fails if the file cannot be changed or the approval cannot be stored.
pub fn write_server(
    session: &CommandSession,
    scope: ConfigScope,
    name: &ServerName,
    entry: &Map<String, Value>,
) -> Result<PathBuf, Failure> {
    let approve = entry.get("enabled") != Some(&Value::Bool(false));
    write_entry(session, scope, &EntryWrite { name, entry, replace: true, approve }).map(|written| written.file)
}

/// Writes a server. Blocks.
///
/// # Errors
///
/// Fails if the server exists and must not be replaced, if the file cannot be changed, or if the approval cannot be
/// stored. In the last case the file is changed back.
pub fn write_entry(
    session: &CommandSession,
    scope: ConfigScope,
    writing: &EntryWrite<'_>,
) -> Result<WrittenEntry, Failure> {
    let places = &session.configuration.places;
    let path =
        places.layer_file(scope.layer()).filter(|path| !path.as_os_str().is_empty()).ok_or_else(no_user_config)?;
    let mut is_taken = false;
    let (before, after) = (String::new(), String::new());
    let mut undo = UndoWrite { layer: scope.layer(), existed: path.exists(), before, after };
    let change = change_file(places, scope.layer(), &path, |text| {
        let edited = set_server(text, writing.name, writing.entry)?;
        is_taken = !writing.replace && edited.change != ConfigChange::Added;
        (undo.before, undo.after) = (text.to_owned(), edited.text.clone());
        Ok(if is_taken { EditedText { text: text.to_owned(), change: ConfigChange::Unchanged } } else { edited })
    })?;
    if is_taken {
        return Err(already_exists(session, writing.name, &path));
    }
    if writing.approve
        && let Err(mut failure) = approve(session, writing, &path)
    {
        let is_undone = undo.run(places, &path).is_ok();
        let result = if is_undone { "not written: cannot approve it" } else { "written but not approved" };
        failure.error.message = format!("{result}: {}", failure.error.message);
        return Err(if is_undone {
            failure
        } else {
            failure.with_hint(format_args!("then: wharf approve {}", writing.name))
        });
    }
    Ok(WrittenEntry { file: path, change })
}

/// The reversal of a write.
struct UndoWrite {
    layer: Layer,
    existed: bool,
    before: String,
    after: String,
}

impl UndoWrite {
    /// Restores the file, unless another process has changed it since.
    fn run(&self, places: &ConfigPaths, path: &Path) -> Result<(), Failure> {
        if !self.existed {
            let holds_ours = std::fs::read_to_string(path).is_ok_and(|text| text == self.after);
            return if holds_ours { std::fs::remove_file(path).map_err(Failure::other) } else { Ok(()) };
        }
        let restore = |text: &str| {
            let text = if text == self.after { &self.before } else { text };
            Ok(EditedText { text: text.to_owned(), change: ConfigChange::Added })
        };
        change_file(places, self.layer, path, restore).map(drop)
    }
}

/// Changes the file of a layer. Blocks.
///
/// # Errors
///
/// Fails if the file cannot be edited or written.
pub fn change_file(
    places: &ConfigPaths,
    layer: Layer,
    path: &Path,
    edit: impl FnMut(&str) -> Result<EditedText, EditRefusal>,
) -> Result<ConfigChange, Failure> {
    let file = match layer.needs_approval() {
        true => ConfigFile::for_project(path, &places.project),
        false => ConfigFile::for_user(path),
    };
    file.edit(edit).map_err(|error| edit_failure(&error))
}

/// Removes the project's own file if nothing is left in it. Blocks.
///
/// # Errors
///
/// Fails if the file cannot be read or removed.
pub fn remove_file_if_empty(places: &ConfigPaths) -> Result<(), Failure> {
    let file = ConfigFile::for_project(places.project_file(), &places.project);
    file.remove_if_empty().map(drop).map_err(|error| edit_failure(&error))
}

fn edit_failure(error: &EditError) -> Failure {
    let kind = if matches!(error, EditError::Store(_)) { FailureKind::Other } else { FailureKind::Usage };
    Failure::new(kind, with_cause(error)).with_hint(error.fix())
}

fn no_user_config() -> Failure {
    Failure::usage("no directory for your own configuration").with_hint("set HOME or WHARF_CONFIG")
}

fn already_exists(session: &CommandSession, name: &ServerName, path: &Path) -> Failure {
    let config = load(&session.configuration.places, &session.environment);
    let mut all = config.servers.iter().chain(&config.beside);
    let found = all.find(|server| server.name == *name && *server.place.file == *path);
    let place = found.map_or_else(|| path.display().to_string(), |server| server.place.to_string());
    Failure::usage(format_args!("server `{name}` already exists in {place}"))
        .with_hint(format_args!("`wharf get {name}` shows it; use --replace to replace it"))
}

/// Approves the entry just written, if the file still holds it and it needs approval.
fn approve(session: &CommandSession, writing: &EntryWrite<'_>, path: &Path) -> Result<(), Failure> {
    let places = &session.configuration.places;
    let config = load(places, &session.environment);
    let mut all = config.servers.iter().chain(&config.beside);
    let is_it = |server: &&ConfiguredServer| server.name == *writing.name && *server.place.file == *path;
    let Some(server) = all.find(is_it).filter(|server| server.written == *writing.entry) else { return Ok(()) };
    if server.approval == ServerApproval::NotNeeded {
        return Ok(());
    }
    let Ok(described) = &server.described else { return Ok(()) };
    let key = ApprovalKey::new(&places.project, path, writing.name.as_str());
    let what = ApprovalSubject::inspect(described, &session.environment);
    open_approvals(session)?.approve(&key, &what, SystemTime::now()).map_err(approvals_failed)
}

fn with_cause(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}
