//! Lifecycle settings of a server.

use std::time::Duration;

use crate::{ServerName, ServerOrigin, ServerSpec};

/// A server definition: name, connection settings and lifecycle settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEntry {
    /// Configured name.
    pub name: ServerName,
    /// Connection settings.
    pub spec: ServerSpec,
    /// Lifecycle settings.
    pub settings: ServerSettings,
}

/// Lifecycle settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// Origin of the definition.
    pub origin: ServerOrigin,
    /// Activation state: enabled, disabled or unapproved.
    pub admission: ActivationState,
    /// Starts the server on first use instead of immediately.
    pub lazy: bool,
    /// Allows the server's tools if no permission rule matches.
    pub trust: bool,
    /// Globs of the tools to offer. `None` means all.
    pub include_tools: Option<Vec<String>>,
    /// Globs of the tools to withhold. Takes precedence over `include_tools`.
    pub exclude_tools: Vec<String>,
    /// Maximum time that a call may take without a response or a progress update.
    pub timeout: Option<Duration>,
    /// Timeouts of single tools, by glob. The first match applies.
    pub tool_timeouts: Vec<(String, Duration)>,
    /// Maximum time for the server to become ready.
    pub startup_timeout: Option<Duration>,
    /// Maximum bytes of one message, in either direction.
    pub max_message: Option<usize>,
    /// Maximum number of concurrent calls. 1 serializes them.
    pub max_concurrent: Option<usize>,
    /// Behaviour after the connection is lost or fails.
    pub reconnect: ReconnectPolicy,
    /// Idle time after which a health check is sent.
    pub health_check: Option<Duration>,
    /// Idle time after which a lazy server is stopped.
    pub idle_stop: Option<Duration>,
    /// Lifetime of cached results of tools that declare themselves read-only.
    pub keep_results: Option<Duration>,
    /// Sharing by the clients of a gateway.
    pub instances: InstanceSettings,
}

/// Sharing of a server by the clients of a gateway.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstanceSettings {
    /// Clients that use the same instance.
    pub sharing: ServerSharing,
    /// Maximum number of instances besides the one that all clients share. `None` is the gateway's default.
    pub max_instances: Option<usize>,
}

/// Clients of a gateway that use the same instance of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServerSharing {
    /// All of them, one after the other where the server may ask them something.
    #[default]
    Shared,
    /// Those of one principal.
    User,
    /// Each session has its own.
    Session,
}

/// Activation state of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ActivationState {
    /// The server may be used.
    #[default]
    Enabled,
    /// The server is switched off.
    Disabled,
    /// The server is defined in a project's file and not yet approved by the user.
    Unapproved,
}

/// Behaviour after a connection to a server is lost or cannot be established.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconnectPolicy {
    /// The server stays disconnected until it is connected explicitly.
    Off,
    /// The connection is retried.
    Backoff(BackoffSettings),
}

/// Number and timing of retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffSettings {
    /// Maximum number of consecutive attempts.
    pub attempts: u32,
    /// Upper bound of the wait before the second attempt. Doubles with each attempt.
    pub base: Duration,
    /// Upper bound of every wait.
    pub max: Duration,
}

impl ServerEntry {
    /// Creates a server with default lifecycle settings.
    pub fn new(name: ServerName, spec: ServerSpec) -> Self {
        Self { name, spec, settings: ServerSettings::default() }
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            origin: ServerOrigin::User,
            admission: ActivationState::Enabled,
            lazy: false,
            trust: false,
            include_tools: None,
            exclude_tools: Vec::new(),
            timeout: None,
            tool_timeouts: Vec::new(),
            startup_timeout: None,
            max_message: None,
            max_concurrent: None,
            reconnect: ReconnectPolicy::Backoff(BackoffSettings::default()),
            health_check: None,
            idle_stop: Some(Duration::from_secs(600)),
            keep_results: None,
            instances: InstanceSettings::default(),
        }
    }
}

impl Default for BackoffSettings {
    fn default() -> Self {
        Self { attempts: 5, base: Duration::from_millis(500), max: Duration::from_secs(60) }
    }
}
