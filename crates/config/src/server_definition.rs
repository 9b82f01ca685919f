//! A server as defined in a configuration file.

use std::time::Duration;

use wharf_spec::{BackoffSettings, HttpTransport, InstanceSettings, ServerName};

use crate::{ApprovalDigest, ConfigProblem, EntrySite, Layer, SourceLocation};

/// A value and its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedValue<T> {
    /// The value.
    pub value: T,
    /// Location of the value.
    pub place: SourceLocation,
}

/// A configured server, valid or not.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ConfiguredServer {
    /// Name of the server.
    pub name: ServerName,
    /// Layer that defines the server.
    pub layer: Layer,
    /// Location of its key.
    pub place: SourceLocation,
    /// Set if the server is enabled.
    pub enabled: bool,
    /// Approval status.
    pub approval: ServerApproval,
    /// The entry as written.
    pub written: serde_json::Map<String, serde_json::Value>,
    /// The parsed definition, or at least one problem.
    pub described: Result<ServerDefinition, Vec<ConfigProblem>>,
}

/// Approval status of a configured server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerApproval {
    /// The server is the user's own and needs no approval.
    NotNeeded,
    /// The user has approved the server in its current form, with this digest.
    Approved(ApprovalDigest),
    /// The user has not approved the server.
    Needed,
    /// The user has approved a different form of this server.
    Changed,
}

/// A server definition as written, before expansion.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerDefinition {
    /// Transport settings.
    pub reach: TransportDefinition,
    /// Base directory of relative paths, and start directory.
    pub site: EntrySite,
    /// Expands `${…}` references.
    pub expands: bool,
    /// Allows the server's tools if no permission rule matches.
    pub trust: bool,
    /// Starts the server on first use.
    pub lazy: bool,
    /// Shows the server's messages.
    pub debug: bool,
    /// Globs of the tools to offer.
    pub include_tools: Option<Vec<String>>,
    /// Globs of the tools to withhold.
    pub exclude_tools: Vec<String>,
    /// Call timeout.
    pub timeout: Option<Duration>,
    /// Call timeouts of single tools, by glob.
    pub tool_timeouts: Vec<(String, Duration)>,
    /// Maximum time for the server to become ready.
    pub startup_timeout: Option<Duration>,
    /// Maximum bytes of one message.
    pub max_message: Option<usize>,
    /// Maximum number of concurrent calls.
    pub max_concurrent: Option<usize>,
    /// Reconnection settings. `Err(false)` disables reconnection, `Err(true)` enables the default.
    pub reconnect: Option<Result<BackoffSettings, bool>>,
    /// Idle time after which a health check is sent.
    pub health_check: Option<Duration>,
    /// Idle time after which a lazy server is stopped.
    pub idle_stop: Option<Duration>,
    /// Lifetime of cached results of read-only tools.
    pub keep_results: Option<Duration>,
    /// Sharing by the clients of a gateway.
    pub instances: InstanceSettings,
    /// Unknown keys and their locations.
    pub unknown: Vec<SourcedValue<String>>,
}

/// Transport of a server definition.
#[derive(Debug, Clone, PartialEq)]
pub enum TransportDefinition {
    /// A local server, started as a child process.
    Stdio(Box<StdioDefinition>),
    /// A remote server, reached over HTTP.
    Http(Box<HttpDefinition>),
}

/// Definition of a local server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StdioDefinition {
    /// Program to start.
    pub command: SourcedValue<String>,
    /// Arguments.
    pub args: Vec<SourcedValue<String>>,
    /// Working directory.
    pub cwd: Option<SourcedValue<String>>,
    /// Variables by name.
    pub env: Vec<(String, SourcedValue<String>)>,
    /// Names of variables inherited from the host's environment.
    pub env_vars: Vec<SourcedValue<String>>,
    /// File with further variables.
    pub env_file: Option<SourcedValue<String>>,
    /// Passes on the whole environment.
    pub inherit_env: bool,
}

/// Definition of a remote server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HttpDefinition {
    /// URL of the server.
    pub url: SourcedValue<String>,
    /// HTTP transport.
    pub form: HttpTransport,
    /// Headers by name.
    pub headers: Vec<(String, SourcedValue<String>)>,
    /// Program that prints further headers, and its arguments. Empty if there is none.
    pub headers_command: Vec<SourcedValue<String>>,
    /// Proxy URL.
    pub proxy: Option<SourcedValue<String>>,
    /// Files of trusted CA certificates.
    pub ca: Vec<SourcedValue<String>>,
    /// File with the client certificate.
    pub client_cert: Option<SourcedValue<String>>,
    /// Copies arguments into headers where a tool's schema asks for it.
    pub mirror_arguments: bool,
    /// Login settings.
    pub oauth: Option<OauthDefinition>,
}

impl HttpDefinition {
    /// Returns the program that prints headers as the definition of a local server, for inspection.
    pub(crate) fn headers_program(&self) -> Option<StdioDefinition> {
        let (command, args) = self.headers_command.split_first()?;
        Some(StdioDefinition {
            command: command.clone(),
            args: args.to_vec(),
            cwd: None,
            env: Vec::new(),
            env_vars: Vec::new(),
            env_file: None,
            inherit_env: false,
        })
    }
}

/// Login settings of a server, with the keys of [`crate::fields::OAUTH`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OauthDefinition {
    /// String values by key, in table order.
    pub texts: Vec<(&'static str, SourcedValue<String>)>,
    /// Loopback port for the login callback.
    pub callback_port: Option<u16>,
}

impl OauthDefinition {
    /// Returns the value of a key.
    pub fn text(&self, name: &str) -> Option<&SourcedValue<String>> {
        self.texts.iter().find(|(other, _)| *other == name).map(|(_, text)| text)
    }

    /// Returns all string values.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &SourcedValue<String>> {
        self.texts.iter().map(|(_, text)| text)
    }
}
