//! Configuration layers from lowest to highest precedence, and the locations of their files.

use std::path::{Path, PathBuf};

/// A source of configuration. A higher layer overrides a lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// `~/.mcp.json`.
    Home,
    /// The user's `config.json`.
    User,
    /// The project's `.mcp.json`.
    ProjectShared,
    /// The project's `.wharf/config.json`.
    Project,
    /// `--config FILE`.
    Flag,
    /// The variable `WHARF_MCP_SERVERS`.
    Variable,
}

/// Locations of all configuration, determined by the program at startup.
#[derive(Debug, Clone, Default)]
pub struct ConfigPaths {
    /// `~/.mcp.json`, if there is a home directory.
    pub home: Option<PathBuf>,
    /// The user's `config.json`.
    pub user: PathBuf,
    /// Set if the user's file was given explicitly and must exist.
    pub user_was_named: bool,
    /// Directory of the project.
    pub project: PathBuf,
    /// Files of `--config`, from lowest to highest precedence.
    pub flags: Vec<PathBuf>,
    /// Loads servers from the files of `--config` and the variable only, and settings from the user's file as well.
    pub only_flags: bool,
    /// Value of `WHARF_MCP_SERVERS`.
    pub variable: Option<String>,
    /// File of approvals. Private.
    pub approvals: PathBuf,
    /// Parent of the private start directories of servers that are not the project's.
    pub server_dirs: PathBuf,
}

impl Layer {
    /// Returns the source of the layer: `global`, `project`, `flag` or `env`.
    pub fn source(self) -> &'static str {
        match self {
            Self::Home | Self::User => "global",
            Self::ProjectShared | Self::Project => "project",
            Self::Flag => "flag",
            Self::Variable => "env",
        }
    }

    /// Reports whether the content of the layer is untrusted until the user approves it.
    pub fn needs_approval(self) -> bool {
        matches!(self, Self::ProjectShared | Self::Project)
    }

    /// Reports whether the layer is a file of the user. Its permission rules must not be lost.
    pub(crate) fn is_user_file(self) -> bool {
        matches!(self, Self::Home | Self::User | Self::Flag)
    }
}

impl ConfigPaths {
    /// Returns the project's own file, written by `--scope project`.
    pub fn project_file(&self) -> PathBuf {
        self.project.join(".wharf").join("config.json")
    }

    /// Returns the project's file that other programs read as well.
    pub fn shared_file(&self) -> PathBuf {
        self.project.join(".mcp.json")
    }

    /// Returns the file of a layer that consists of one file.
    pub fn layer_file(&self, layer: Layer) -> Option<PathBuf> {
        match layer {
            Layer::Home => self.home.as_deref().map(Path::to_owned),
            Layer::User => Some(self.user.clone()),
            Layer::ProjectShared => Some(self.shared_file()),
            Layer::Project => Some(self.project_file()),
            Layer::Flag | Layer::Variable => None,
        }
    }
}
