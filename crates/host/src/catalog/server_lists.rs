//! Lists of a server as received.

use std::fmt;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use wharf_client::WithheldEntry;
use wharf_wire::{PromptDefinition, Resource, ResourceTemplate, ToolDefinition};

/// All lists of a server. Every string is untrusted.
#[derive(Debug, Clone, Default)]
pub struct ServerLists {
    /// Tools.
    pub tools: Vec<ToolDefinition>,
    /// Resources.
    pub resources: Vec<Resource>,
    /// Resource templates.
    pub templates: Vec<ResourceTemplate>,
    /// Prompts.
    pub prompts: Vec<PromptDefinition>,
    /// Instructions for a model.
    pub instructions: Option<String>,
    /// Listed entries that cannot be used.
    pub withheld: Vec<(ListName, WithheldEntry)>,
    /// Lists that could not be read, with the error (escaped).
    pub failures: Vec<(ListName, String)>,
    /// Lists that have not been requested. They are empty here, regardless of their content at the server.
    pub unasked: Vec<ListName>,
    /// Age of the lists.
    pub freshness: ListFreshness,
}

/// The lists that a server can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListName {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// `prompts/list`
    Prompts,
}

/// Origin of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListFreshness {
    /// Listed by the running server.
    #[default]
    Live,
    /// Read from the cache.
    Kept {
        /// Time at which the list was live.
        at: SystemTime,
    },
}

impl fmt::Display for ListName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resource templates",
            Self::Prompts => "prompts",
        })
    }
}
