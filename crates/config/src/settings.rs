//! Settings of a configuration besides its servers.

use std::path::PathBuf;
use std::time::Duration;

use wharf_spec::BackoffSettings;

use crate::{ConfigProblem, ProviderSettings, SourceLocation};

/// Settings for all servers, from the user's own files and flags.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct GlobalSettings {
    /// `globalSettings.timeout`.
    pub timeout: Option<Duration>,
    /// `globalSettings.debug`.
    pub debug: bool,
    /// `toolNames`: format of tool names, as written.
    pub tool_names: Option<String>,
    /// `healthCheckMs`.
    pub health_check: Option<Duration>,
    /// `resultLimit`: maximum bytes of a result passed to an agent.
    pub result_limit: Option<usize>,
    /// `cacheTtlMs`.
    pub keep_results: Option<Duration>,
    /// `reconnect{attempts, baseMs, maxMs}`.
    pub reconnect: Option<BackoffSettings>,
    /// `tokenStore`: `auto`, `file` or `keyring`.
    pub token_store: Option<String>,
    /// `secretCommand`: program that returns secrets for `${secret:NAME}`, with the name in place of `{name}`.
    pub secret_command: Option<Vec<String>>,
    /// `model`.
    pub model: Option<String>,
    /// `providers`, in order of first mention. A provider of a higher layer replaces the one of a lower layer.
    pub providers: Vec<(String, Result<ProviderSettings, Vec<ConfigProblem>>)>,
    /// `profiles`, in order of first mention. A profile of a higher layer replaces the one of a lower layer.
    pub profiles: Vec<(String, Result<ProfileSettings, Vec<ConfigProblem>>)>,
    /// `serve.waitForAnswerMs`.
    pub wait_for_answer: Option<Duration>,
    /// `permissions` of all layers. Rules of a project may only deny and ask.
    pub rules: Vec<RuleText>,
    /// Set if a file of the user cannot be read or has a newer version. Its denials are unknown, so no tool should be
    /// called. Not set while the last good content of the file applies.
    pub unread: bool,
    /// File to which permanent permissions are written.
    pub rule_file: PathBuf,
}

/// What `wharf serve` offers to the clients of a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileSettings {
    /// Globs of the servers. Empty selects all.
    pub servers: Vec<String>,
    /// Globs of the tools, as `<server>__<tool>`. Empty selects all.
    pub tools: Vec<String>,
    /// Globs of the tools to leave out.
    pub exclude_tools: Vec<String>,
    /// Set if tools and prompts keep their servers' names.
    pub plain_names: Option<bool>,
    /// Time that a call waits for an answer elsewhere if its client cannot be asked.
    pub wait_for_answer: Option<Duration>,
    /// Permission rules for its clients.
    pub rules: Vec<RuleText>,
    /// Set if clients search for tools instead of seeing all of them.
    pub searches_tools: bool,
}

/// A permission rule as written in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleText {
    /// Tool name.
    pub tool: String,
    /// Argument pattern.
    pub pattern: Option<String>,
    /// `allow`, `ask` or `deny`.
    pub action: String,
    /// The file that defines the server.
    pub defined_in: Option<String>,
    /// Location of the rule.
    pub place: SourceLocation,
    /// Set if the rule is from a project's file.
    pub from_project: bool,
}
