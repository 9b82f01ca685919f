//! Edits of a configuration file on disk, safe against concurrent edits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use wharf_store::{Document, DocumentLoadError, DocumentPrivacy, DocumentSaveError, DocumentUpdateError, LockError};

use super::{ConfigChange, EditRefusal, EditedText};
use crate::SourceLocation;
use crate::tree::TextPosition;

/// Maximum bytes of a configuration file.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Maximum attempts of an edit while other processes remove the directory of an emptied file.
const MAX_DIRECTORY_ATTEMPTS: u32 = 4;

/// A configuration file to edit. Operations block.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    document: Document,
    /// Canonical root of the project that must contain the file.
    within: Option<PathBuf>,
}

/// Error of an edit. The file is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The file's content cannot be edited.
    #[error("{place}: {refusal}")]
    Refused {
        /// Location of the problem.
        place: SourceLocation,
        /// Reason.
        refusal: EditRefusal,
    },
    /// A symbolic link leads out of the project.
    #[error("`{}` links to a location outside of the project: `{}`", .file.display(), .target.display())]
    Outside {
        /// The file.
        file: PathBuf,
        /// Target of the link.
        target: PathBuf,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    Store(#[from] DocumentSaveError),
}

impl ConfigFile {
    /// Creates a handle for a file of the user. A new file is private, since it may hold secrets. An existing file
    /// retains its mode.
    pub fn for_user(path: impl Into<PathBuf>) -> Self {
        Self { document: document(path).created_private(), within: None }
    }

    /// Creates a handle for a file of a project. A new file gets the mode of the umask. The file is not edited through
    /// a symbolic link that leads out of the project.
    pub fn for_project(path: impl Into<PathBuf>, project: impl Into<PathBuf>) -> Self {
        Self { document: document(path), within: Some(project.into()) }
    }

    /// Sets the maximum time to wait for other writers. The default is ten seconds.
    pub fn with_lock_timeout(self, max_wait: Duration) -> Self {
        Self { document: self.document.with_lock_timeout(max_wait), ..self }
    }

    /// Returns the path as given.
    pub fn path(&self) -> &Path {
        self.document.path()
    }

    /// Replaces the content with the result of an edit. A missing file is treated as an empty text.
    ///
    /// The edit runs while the file is locked and may run more than once. Unchanged content is not written, and a
    /// missing file is not created if nothing changes.
    ///
    /// # Errors
    /// Returns an [`EditError`] if the edit is rejected or the file cannot be read or written. The file is then
    /// unchanged.
    pub fn edit(
        &self,
        mut edit: impl FnMut(&str) -> Result<EditedText, EditRefusal>,
    ) -> Result<ConfigChange, EditError> {
        let has_directory = || self.path().parent().is_some_and(Path::exists);
        for _ in 1..MAX_DIRECTORY_ATTEMPTS {
            match self.edit_once(&mut edit) {
                Err(EditError::Store(_)) if !has_directory() => {}
                outcome => return outcome,
            }
        }
        self.edit_once(&mut edit)
    }

    /// Removes the file if it has no servers, no other keys and no comments, and then its directory if that is empty.
    /// Returns whether the file was removed.
    ///
    /// # Errors
    /// Returns an [`EditError`] if the file cannot be read or removed.
    pub fn remove_if_empty(&self) -> Result<bool, EditError> {
        self.check_within()?;
        let is_removed = self.document.remove_if(is_empty_configuration)?;
        if let (true, Some(parent)) = (is_removed, self.path().parent()) {
            // Fails if the directory has other entries, which stay.
            let _ = std::fs::remove_dir(parent);
        }
        Ok(is_removed)
    }

    fn edit_once(
        &self,
        edit: &mut impl FnMut(&str) -> Result<EditedText, EditRefusal>,
    ) -> Result<ConfigChange, EditError> {
        self.check_format().and_then(|()| self.check_within())?;
        if !self.path().exists() {
            // Do not create the directory if there is nothing to write.
            let change = edit("").map_err(|refusal| self.refusal_error(refusal))?.change;
            if !change.is_change() {
                return Ok(change);
            }
        }
        let mut change = ConfigChange::Unchanged;
        let updated = self.document.update(|old| {
            let edited = edit(decode_text(old.unwrap_or_default())?)?;
            let is_change = edited.change.is_change();
            change = edited.change;
            Ok(is_change.then(|| edited.text.into_bytes()))
        });
        match updated {
            Ok(_) => Ok(change),
            Err(DocumentUpdateError::Edit(refusal)) => Err(self.refusal_error(refusal)),
            Err(DocumentUpdateError::Save(error)) => Err(error.into()),
        }
    }

    fn check_format(&self) -> Result<(), EditError> {
        let format = match self.path().extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml") => "YAML",
            Some("toml") => "TOML",
            _ => return Ok(()),
        };
        Err(self.refusal_error(EditRefusal::Format { format }))
    }

    /// Checks that a project's file is inside the project. A dangling link is rejected.
    fn check_within(&self) -> Result<(), EditError> {
        let Some(project) = self.within.as_ref().and_then(|project| project.canonicalize().ok()) else { return Ok(()) };
        let Some(nearest) = self.path().ancestors().find(|above| above.symlink_metadata().is_ok()) else {
            return Ok(());
        };
        match nearest.canonicalize() {
            Ok(target) if target.starts_with(&project) => Ok(()),
            target => {
                let target = target.or_else(|_| nearest.read_link()).unwrap_or_default();
                Err(EditError::Outside { file: self.path().to_owned(), target })
            }
        }
    }

    fn refusal_error(&self, refusal: EditRefusal) -> EditError {
        EditError::Refused { place: SourceLocation { file: self.path().into(), at: refusal.position() }, refusal }
    }
}

impl EditError {
    /// Returns a suggested fix.
    pub fn fix(&self) -> String {
        match self {
            Self::Refused { refusal, .. } => refusal.fix().to_owned(),
            Self::Outside { .. } => "replace the link with a file, or edit the link's target".to_owned(),
            Self::Store(DocumentSaveError::Load(DocumentLoadError::Unsafe(flaw))) => flaw.fix(),
            Self::Store(DocumentSaveError::Load(DocumentLoadError::TooLarge { .. })) => {
                "split the file: --config can be given more than once".to_owned()
            }
            Self::Store(DocumentSaveError::Load(DocumentLoadError::NotAFile { .. })) => {
                "replace it with a regular file".to_owned()
            }
            Self::Store(DocumentSaveError::Locked(LockError::Held { .. }) | DocumentSaveError::Disturbed { .. }) => {
                "retry when the other program has finished".to_owned()
            }
            Self::Store(_) => "check the permissions of the file and its directory, and the free disk space".to_owned(),
        }
    }

    /// Returns the position in the file, if the error concerns its content.
    pub fn position(&self) -> Option<TextPosition> {
        match self {
            Self::Refused { place, .. } => Some(place.at),
            _ => None,
        }
    }
}

/// Reports whether a text defines nothing: no servers, no other keys, no comments.
fn is_empty_configuration(bytes: &[u8]) -> bool {
    let Ok(Value::Object(members)) = serde_json::from_slice(bytes) else { return false };
    members.iter().all(|(key, value)| match key.as_str() {
        "mcpServers" => value.as_object().is_some_and(Map::is_empty),
        "mcp" => *value == serde_json::json!({ "servers": {} }),
        "version" => true,
        _ => false,
    })
}

fn document(path: impl Into<PathBuf>) -> Document {
    Document::new(path, DocumentPrivacy::Shared).with_limit(MAX_FILE_BYTES)
}

fn decode_text(bytes: &[u8]) -> Result<&str, EditRefusal> {
    let what = match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => "UTF-16",
        _ => "another encoding",
    };
    match str::from_utf8(bytes) {
        Ok(text) if what != "UTF-16" => Ok(text),
        _ => Err(EditRefusal::NotText { what }),
    }
}
