//! The layers, low to high, and where each is looked for.

use std::path::{Path, PathBuf};

/// Where a value comes from. What is higher replaces what is lower.
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

/// Where configuration is looked for, all of it values of the edge of the program.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// `~/.mcp.json`, where there is a home.
    pub home: Option<PathBuf>,
    /// The user's `config.json`.
    pub user: PathBuf,
    /// Somebody named the user's file, so that it has to be there.
    pub user_was_named: bool,
    /// The project: the working directory.
    pub project: PathBuf,
    /// The files of `--config`, low to high.
    pub flags: Vec<PathBuf>,
    /// Reads the files of `--config` and the variable, and nothing else but the user's settings.
    pub only_flags: bool,
    /// What `WHARF_MCP_SERVERS` says.
    pub variable: Option<String>,
    /// What the user approved: a private file.
    pub approvals: PathBuf,
    /// Where servers that are not the project's start, each in a private directory of its name.
    pub server_dirs: PathBuf,
}

impl Layer {
    /// Whose it is: `global`, `project`, `flag` or `env`.
    pub fn source(self) -> &'static str {
        match self {
            Self::Home | Self::User => "global",
            Self::ProjectShared | Self::Project => "project",
            Self::Flag => "flag",
            Self::Variable => "env",
        }
    }

    /// Whether what it says is nobody's word until it is approved.
    pub fn needs_approval(self) -> bool {
        matches!(self, Self::ProjectShared | Self::Project)
    }

    /// Whether it is a file of the user's own, whose rules protect them.
    pub(crate) fn is_users(self) -> bool {
        matches!(self, Self::Home | Self::User | Self::Flag)
    }
}

impl Places {
    /// The project's own file, which `--scope project` writes.
    pub fn project_file(&self) -> PathBuf {
        self.project.join(".wharf").join("config.json")
    }

    /// The project's file that other programs read as well.
    pub fn shared_file(&self) -> PathBuf {
        self.project.join(".mcp.json")
    }

    /// The file of a layer that is one file.
    pub fn file_of(&self, layer: Layer) -> Option<PathBuf> {
        match layer {
            Layer::Home => self.home.as_deref().map(Path::to_owned),
            Layer::User => Some(self.user.clone()),
            Layer::ProjectShared => Some(self.shared_file()),
            Layer::Project => Some(self.project_file()),
            Layer::Flag | Layer::Variable => None,
        }
    }
}
