//! What a configuration says beside its servers.

use std::path::PathBuf;
use std::time::Duration;

use wharf_spec::Backoff;

use crate::{Place, Problem, ProviderSettings};

/// What holds for all servers, from the user's own files and flags.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// `globalSettings.timeout`.
    pub timeout: Option<Duration>,
    /// `globalSettings.debug`.
    pub debug: bool,
    /// `toolNames`: the style of tools' names, as it is written.
    pub tool_names: Option<String>,
    /// `healthCheckMs`.
    pub health_check: Option<Duration>,
    /// `resultLimit`: bytes of a result an agent is given.
    pub result_limit: Option<usize>,
    /// `cacheTtlMs`.
    pub keep_results: Option<Duration>,
    /// `reconnect{attempts, baseMs, maxMs}`.
    pub reconnect: Option<Backoff>,
    /// `tokenStore`: `auto`, `file` or `keyring`.
    pub token_store: Option<String>,
    /// `secretCommand`: the program that is asked for `${secret:NAME}`, with the name in place of `{name}`.
    pub secret_command: Option<Vec<String>>,
    /// `model`.
    pub model: Option<String>,
    /// `providers`, in the order in which they were first named. One of a higher layer replaces that of a lower one.
    pub providers: Vec<(String, Result<ProviderSettings, Vec<Problem>>)>,
    /// `permissions`, of every layer: what a project says may only deny and ask.
    pub rules: Vec<RuleText>,
    /// Whether a file of the user's own could not be read, or is of a newer version: what it forbids is not known, so
    /// nothing should be called. A file that is read again and says what it said before is none of these.
    pub unread: bool,
    /// The file an "always" is written to.
    pub rule_file: PathBuf,
}

/// A rule as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleText {
    /// Which tools.
    pub tool: String,
    /// Which arguments.
    pub pattern: Option<String>,
    /// `allow`, `ask` or `deny`.
    pub action: String,
    /// The file that defines the server.
    pub defined_in: Option<String>,
    /// Where it stands.
    pub place: Place,
    /// Whether a project says so.
    pub from_project: bool,
}
