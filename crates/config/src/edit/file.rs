//! A configuration file on disk, edited so that nobody's edit is lost.

use std::path::{Path, PathBuf};
use std::time::Duration;

use wharf_store::{Document, LoadError, LockError, Privacy, SaveError, UpdateError};

use super::{Change, Edited, Refusal};
use crate::Place;
use crate::tree::Position;

/// The most a configuration file may weigh.
const LIMIT: u64 = 16 << 20;

/// A configuration file that is edited. Blocks.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    document: Document,
    /// The project that it has to be in, links followed.
    within: Option<PathBuf>,
}

/// Why a file was not edited. It holds what it held before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// Its content does not allow it.
    #[error("{place}: {refusal}")]
    Refused {
        /// Where it stands.
        place: Place,
        /// What is in the way.
        refusal: Refusal,
    },
    /// A link leads out of the project.
    #[error("`{}` leads out of the project, to `{}`", .file.display(), .target.display())]
    Outside {
        /// The file.
        file: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// It was not read or not written.
    #[error(transparent)]
    Store(#[from] SaveError),
}

impl ConfigFile {
    /// A file of the user's own. It may hold secrets, so a new one is for nobody else; an existing one keeps its mode.
    pub fn of_user(path: impl Into<PathBuf>) -> Self {
        Self { document: document(path).made_private(), within: None }
    }

    /// A file of a project, which others may read as the umask has it. It is not edited through a link that leads out
    /// of the project.
    pub fn of_project(path: impl Into<PathBuf>, project: impl Into<PathBuf>) -> Self {
        Self { document: document(path), within: Some(project.into()) }
    }

    /// Bounds the wait for others who are writing; ten seconds otherwise.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { document: self.document.with_patience(patience), ..self }
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        self.document.path()
    }

    /// Replaces the content by what the edit makes of it. An absent file is an empty text.
    ///
    /// The edit sees what is there while everybody else is locked out, and may be called again. What does not change is
    /// not written, and no file is made to hold nothing new.
    pub fn edit(&self, mut edit: impl FnMut(&str) -> Result<Edited, Refusal>) -> Result<Change, EditError> {
        self.check_format().and_then(|()| self.check_within())?;
        if !self.path().exists() {
            // Not even its directory is made for nothing.
            let change = edit("").map_err(|refusal| self.refused(refusal))?.change;
            if !change.is_change() {
                return Ok(change);
            }
        }
        let mut change = Change::Unchanged;
        let updated = self.document.update(|old| {
            let edited = edit(text(old.unwrap_or_default())?)?;
            let is_change = edited.change.is_change();
            change = edited.change;
            Ok(is_change.then(|| edited.text.into_bytes()))
        });
        match updated {
            Ok(_) => Ok(change),
            Err(UpdateError::Edit(refusal)) => Err(self.refused(refusal)),
            Err(UpdateError::Save(error)) => Err(error.into()),
        }
    }

    fn check_format(&self) -> Result<(), EditError> {
        let format = match self.path().extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml") => "YAML",
            Some("toml") => "TOML",
            _ => return Ok(()),
        };
        Err(self.refused(Refusal::Format { format }))
    }

    /// Makes sure that a project's file is in the project. A link that leads to nothing yet is not trusted to.
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

    fn refused(&self, refusal: Refusal) -> EditError {
        EditError::Refused { place: Place { file: self.path().into(), at: refusal.at() }, refusal }
    }
}

impl EditError {
    /// What to do about it.
    pub fn fix(&self) -> String {
        match self {
            Self::Refused { refusal, .. } => refusal.fix().to_owned(),
            Self::Outside { .. } => "put a file in place of the link, or edit what it leads to".to_owned(),
            Self::Store(SaveError::Load(LoadError::Unsafe(flaw))) => flaw.fix(),
            Self::Store(SaveError::Load(LoadError::TooLarge { .. })) => {
                "divide it: --config may be repeated".to_owned()
            }
            Self::Store(SaveError::Load(LoadError::NotAFile { .. })) => "put a regular file there".to_owned(),
            Self::Store(SaveError::Locked(LockError::Held { .. }) | SaveError::Disturbed { .. }) => {
                "try again when the other program is done".to_owned()
            }
            Self::Store(_) => {
                "see that you may write the file and its directory, and that the disk has room".to_owned()
            }
        }
    }

    /// Where in the file, if it is about its content.
    pub fn at(&self) -> Option<Position> {
        match self {
            Self::Refused { place, .. } => Some(place.at),
            _ => None,
        }
    }
}

fn document(path: impl Into<PathBuf>) -> Document {
    Document::at(path, Privacy::Shared).with_limit(LIMIT)
}

fn text(bytes: &[u8]) -> Result<&str, Refusal> {
    let what = match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => "UTF-16",
        _ => "something else",
    };
    match str::from_utf8(bytes) {
        Ok(text) if what != "UTF-16" => Ok(text),
        _ => Err(Refusal::NotText { what }),
    }
}
