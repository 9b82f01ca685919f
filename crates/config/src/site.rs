//! The directories that give an entry's paths their meaning.

use std::path::{Path, PathBuf};

use wharf_spec::ServerName;

use crate::{Layer, Places};

/// Where an entry stands: what its relative paths resolve against, and where its server starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntrySite {
    /// The directory that relative paths resolve against. An entry of a variable stands in no file and has none.
    pub base: Option<PathBuf>,
    /// The directory in which the server starts unless `cwd` names another.
    pub start: StartDirectory,
    /// The project's directory: the value of `${project}`.
    pub project: PathBuf,
}

/// The directory in which a server starts unless its entry names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartDirectory {
    /// The project's, for its own approved servers.
    Project(PathBuf),
    /// A private directory of that server, for every other one: launchers run code of the directory they start in.
    Private(PathBuf),
}

/// The site of a draft, which stands in no file yet.
impl Default for EntrySite {
    fn default() -> Self {
        Self { base: None, start: StartDirectory::Private("/".into()), project: PathBuf::new() }
    }
}

impl EntrySite {
    /// The site of an entry in the file of a layer.
    pub fn new(places: &Places, layer: Layer, file: &Path, name: &ServerName) -> Self {
        let (base, start) = match layer {
            // The project's own file stands below `.wharf`, and speaks of the project.
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

    /// Returns where a path of the entry leads; nothing where it is relative and has nothing to be relative to.
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
    /// Without a state directory it is the root directory, which belongs to the system.
    fn private(places: &Places, name: &ServerName) -> Self {
        match places.server_dirs.as_os_str().is_empty() {
            true => Self::Private("/".into()),
            false => Self::Private(places.server_dirs.join(name.as_str())),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        match self {
            Self::Project(path) | Self::Private(path) => path,
        }
    }

    /// Makes a private directory that is missing, and returns the directory to start in: the root directory where none
    /// can be made. Blocks.
    pub(crate) fn prepare(&self) -> PathBuf {
        match self {
            Self::Project(path) => path.clone(),
            Self::Private(path) => match wharf_store::make_private_directory(path) {
                Ok(()) => path.clone(),
                Err(_) => PathBuf::from("/"),
            },
        }
    }
}
