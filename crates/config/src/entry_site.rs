//! Directories that an entry's paths are resolved against.

use std::path::{Path, PathBuf};

use wharf_spec::ServerName;

use crate::{ConfigPaths, Layer};

/// Directories of an entry: the base of its relative paths, and the start directory of its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntrySite {
    /// Base directory of relative paths. `None` for an entry of the variable, which is not in a file.
    pub base: Option<PathBuf>,
    /// Directory in which the server starts if `cwd` is not set.
    pub start: StartDirectory,
    /// Directory of the project: the value of `${project}`.
    pub project: PathBuf,
}

/// The directory in which a server starts if its entry does not set one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartDirectory {
    /// The project's directory, for its own approved servers.
    Project(PathBuf),
    /// A private directory for any other server, because launchers run code from the directory in which they start.
    Private(PathBuf),
}

/// The site of a draft, which is not in a file yet.
impl Default for EntrySite {
    fn default() -> Self {
        Self { base: None, start: StartDirectory::Private("/".into()), project: PathBuf::new() }
    }
}

impl EntrySite {
    /// Returns the site of an entry in the file of a layer.
    pub fn new(places: &ConfigPaths, layer: Layer, file: &Path, name: &ServerName) -> Self {
        let (base, start) = match layer {
            // The project's own file is inside `.wharf`, but its paths are relative to the project.
            Layer::Project | Layer::ProjectShared => {
                (Some(places.project.clone()), StartDirectory::Project(places.project.clone()))
            }
            Layer::Home | Layer::User | Layer::Flag => {
                (file.parent().map(Path::to_owned), StartDirectory::private(places, name))
            }
            Layer::Variable => (None, StartDirectory::private(places, name)),
        };
        Self { base, start, project: places.project.clone() }
    }

    /// Resolves a path of the entry. Returns `None` if it is relative and there is no base directory.
    pub fn resolve(&self, path: &str) -> Option<PathBuf> {
        let path = Path::new(path);
        match &self.base {
            _ if path.is_absolute() => Some(path.to_owned()),
            Some(base) => Some(base.join(path)),
            None => None,
        }
    }
}

impl StartDirectory {
    /// Returns the private directory of a server. Without a state directory, the root directory, which belongs to the
    /// system.
    fn private(places: &ConfigPaths, name: &ServerName) -> Self {
        match places.server_dirs.as_os_str().is_empty() {
            true => Self::Private("/".into()),
            false => Self::Private(places.server_dirs.join(name.as_str())),
        }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        match self {
            Self::Project(path) | Self::Private(path) => path,
        }
    }

    /// Creates a missing private directory and returns the directory to start in. Falls back to the root directory if
    /// the directory cannot be created. Blocks.
    pub(crate) fn prepare(&self) -> PathBuf {
        match self {
            Self::Project(path) => path.clone(),
            Self::Private(path) => match wharf_store::create_private_directory(path) {
                Ok(()) => path.clone(),
                Err(_) => PathBuf::from("/"),
            },
        }
    }
}
