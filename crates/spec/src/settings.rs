//! How a server is to be kept, beside how it is reached.

use std::time::Duration;

use crate::{ServerName, ServerOrigin, ServerSpec};

/// A server: its name, how it is reached, and how it is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEntry {
    /// What it is called here.
    pub name: ServerName,
    /// How it is reached.
    pub spec: ServerSpec,
    /// How it is kept.
    pub settings: ServerSettings,
}

/// How a server is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// Where it is defined.
    pub origin: ServerOrigin,
    /// Whether it is used, and if not, why not.
    pub admission: Admission,
    /// Starts it with its first use instead of at once.
    pub lazy: bool,
    /// Allows its tools where no rule says otherwise.
    pub trust: bool,
    /// Globs of the tools that are used; all of them when absent.
    pub include_tools: Option<Vec<String>>,
    /// Globs of the tools that are not used; stronger than the others.
    pub exclude_tools: Vec<String>,
    /// How long a call may go without an answer or progress.
    pub timeout: Option<Duration>,
    /// The same for single tools, by glob; the first that matches holds.
    pub tool_timeouts: Vec<(String, Duration)>,
    /// How long it may take to get ready.
    pub startup_timeout: Option<Duration>,
    /// Calls it is given at once; 1 makes them one after the other.
    pub max_concurrent: Option<usize>,
    /// What happens when it is lost.
    pub reconnect: Reconnect,
    /// Asks it whether it is there, this long after it was last used.
    pub health_check: Option<Duration>,
    /// Stops a lazy server this long after it was last used.
    pub idle_stop: Option<Duration>,
    /// Keeps results of tools that say they only read, this long.
    pub keep_results: Option<Duration>,
}

/// Whether a server may be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    #[default]
    Enabled,
    /// It is switched off.
    Disabled,
    /// It comes from a project's own file, and nobody has approved it yet.
    Unapproved,
}

/// What happens when a server is lost, or cannot be had in the first place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reconnect {
    /// Nothing, until somebody connects it.
    Off,
    /// It is tried again.
    Backoff(Backoff),
}

/// How often and how soon a server is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Attempts in a row before it is given up.
    pub attempts: u32,
    /// The longest wait before the second attempt; it doubles with each.
    pub base: Duration,
    /// The longest wait of all.
    pub max: Duration,
}

impl ServerEntry {
    /// A server that is kept in the ordinary way.
    pub fn new(name: ServerName, spec: ServerSpec) -> Self {
        Self { name, spec, settings: ServerSettings::default() }
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            origin: ServerOrigin::User,
            admission: Admission::Enabled,
            lazy: false,
            trust: false,
            include_tools: None,
            exclude_tools: Vec::new(),
            timeout: None,
            tool_timeouts: Vec::new(),
            startup_timeout: None,
            max_concurrent: None,
            reconnect: Reconnect::Backoff(Backoff::default()),
            health_check: None,
            idle_stop: Some(Duration::from_secs(600)),
            keep_results: None,
        }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self { attempts: 5, base: Duration::from_millis(500), max: Duration::from_secs(60) }
    }
}
