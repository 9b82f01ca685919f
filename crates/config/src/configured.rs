//! A server as a configuration describes it.

use std::time::Duration;

use wharf_spec::{Backoff, HttpForm, ServerName};

use crate::{ApprovalDigest, EntrySite, Layer, Place, Problem};

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sited<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub place: Place,
}

/// A server of a configuration, whether it can be used or not.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Configured {
    /// What it is called.
    pub name: ServerName,
    /// The layer it stands in.
    pub layer: Layer,
    /// Where its key stands.
    pub place: Place,
    /// Whether it is switched on.
    pub enabled: bool,
    /// Whether it may be used.
    pub approval: Approval,
    /// The entry as it was written.
    pub written: serde_json::Map<String, serde_json::Value>,
    /// What it is, or what is wrong with it; then there is at least one problem.
    pub described: Result<Described, Vec<Problem>>,
}

/// Whether somebody has agreed to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// It is the user's own.
    NotNeeded,
    /// The user has approved exactly this, under this digest.
    Approved(ApprovalDigest),
    /// Nobody has approved it.
    Needed,
    /// The user has approved something else of that name, in that file.
    Changed,
}

/// A server as it was written: nothing is expanded yet.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Described {
    /// How it is reached.
    pub reach: Reach,
    /// What its paths are relative to, and where it starts.
    pub site: EntrySite,
    /// Whether `${…}` is expanded.
    pub expands: bool,
    /// Allows its tools where no rule says otherwise.
    pub trust: bool,
    /// Starts with its first use.
    pub lazy: bool,
    /// Shows its messages.
    pub debug: bool,
    /// Globs of the tools that are used.
    pub include_tools: Option<Vec<String>>,
    /// Globs of the tools that are not.
    pub exclude_tools: Vec<String>,
    /// How long a call may take.
    pub timeout: Option<Duration>,
    /// The same for single tools, by glob.
    pub tool_timeouts: Vec<(String, Duration)>,
    /// How long it may take to get ready.
    pub startup_timeout: Option<Duration>,
    /// Calls it is given at once.
    pub max_concurrent: Option<usize>,
    /// What happens when it is lost: `false` is nothing.
    pub reconnect: Option<Result<Backoff, bool>>,
    /// Asks it whether it is there, this long after it was last used.
    pub health_check: Option<Duration>,
    /// Stops it when lazy and idle this long.
    pub idle_stop: Option<Duration>,
    /// Keeps results of tools that only read.
    pub keep_results: Option<Duration>,
    /// Keys nobody here knows, and where they stand.
    pub unknown: Vec<Sited<String>>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Reach {
    /// By starting it.
    Stdio(Box<DescribedStdio>),
    /// By dialling it.
    Http(Box<DescribedHttp>),
}

/// A server to be started.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DescribedStdio {
    /// The program.
    pub command: Sited<String>,
    /// Its arguments.
    pub args: Vec<Sited<String>>,
    /// Where it runs.
    pub cwd: Option<Sited<String>>,
    /// Variables by name.
    pub env: Vec<(String, Sited<String>)>,
    /// Names of variables handed down from the surroundings.
    pub env_vars: Vec<Sited<String>>,
    /// A file of variables.
    pub env_file: Option<Sited<String>>,
    /// Hands the whole environment down.
    pub inherit_env: bool,
}

/// A server to be dialled.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DescribedHttp {
    /// Its address.
    pub url: Sited<String>,
    /// Which form of the protocol it speaks.
    pub form: HttpForm,
    /// Headers by name.
    pub headers: Vec<(String, Sited<String>)>,
    /// The proxy to go through.
    pub proxy: Option<Sited<String>>,
    /// Files of certificates to trust.
    pub ca: Vec<Sited<String>>,
    /// The client's own certificate.
    pub client_cert: Option<Sited<String>>,
    /// Repeats arguments in headers where a schema says so.
    pub mirror_arguments: bool,
    /// How to log in.
    pub oauth: Option<Oauth>,
}

/// How to log in at a server: what stands under the names of [`crate::fields::OAUTH`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Oauth {
    /// Its texts by name, in the order of the table.
    pub texts: Vec<(&'static str, Sited<String>)>,
    /// The port a login comes back to.
    pub callback_port: Option<u16>,
}

impl Oauth {
    /// The text of this name.
    pub fn text(&self, name: &str) -> Option<&Sited<String>> {
        self.texts.iter().find(|(other, _)| *other == name).map(|(_, text)| text)
    }

    /// Every text of it.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Sited<String>> {
        self.texts.iter().map(|(_, text)| text)
    }
}
