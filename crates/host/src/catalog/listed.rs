//! What a server has listed, as it came.

use std::fmt;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use wharf_client::Withheld;
use wharf_wire::{PromptDefinition, Resource, ResourceTemplate, ToolDefinition};

/// Everything a server listed. Every string in it is untrusted.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// Its tools.
    pub tools: Vec<ToolDefinition>,
    /// Its resources.
    pub resources: Vec<Resource>,
    /// Its families of resources.
    pub templates: Vec<ResourceTemplate>,
    /// Its prompts.
    pub prompts: Vec<PromptDefinition>,
    /// What it would like a model to know.
    pub instructions: Option<String>,
    /// What was listed and cannot be used.
    pub withheld: Vec<(ListName, Withheld)>,
    /// The lists that could not be had, and why; escaped.
    pub failures: Vec<(ListName, String)>,
    /// The lists it has and has not been asked for: empty here, whatever is in them.
    pub unasked: Vec<ListName>,
    /// How old all of this is.
    pub freshness: Freshness,
}

/// The lists a server has.
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

/// Where a list comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Freshness {
    /// From the server, which is running.
    #[default]
    Live,
    /// From an earlier time, of which it was kept.
    Kept {
        /// When it was live.
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
