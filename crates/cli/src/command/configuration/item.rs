//! A configured server as shown by `list` and `get`.

use serde::Serialize;
use serde_json::{Map, Value};
use wharf_config::fields::SERVER;
use wharf_config::{Config, ConfigProblem, ConfiguredServer, ProblemSeverity, ServerApproval};
use wharf_spec::Environment;
use wharf_terminal::status::status_rows::transport_word;

use crate::masking::{self, MaskedReference, SecretDisplay, references};

/// JSON document of a configured server. The entry's own keys are flattened into it.
#[derive(Debug, Serialize)]
pub struct ConfiguredServerItem {
    pub id: String,
    pub transport: Option<&'static str>,
    pub source: &'static str,
    pub file: String,
    pub line: u32,
    pub state: &'static str,
    pub enabled: bool,
    /// True if the server is the user's own or was approved.
    pub approved: bool,
    pub trust: bool,
    /// True if another entry of the same id is in effect instead.
    pub shadowed: bool,
    pub command: Value,
    pub args: Value,
    pub url: Value,
    pub env: Value,
    pub headers: Value,
    /// Other known keys of the entry.
    #[serde(flatten)]
    pub others: Map<String, Value>,
    pub unknown: Map<String, Value>,
    pub references: Vec<ReferenceItem>,
    pub problems: Vec<ProblemItem>,
}

/// A reference in an entry.
#[derive(Debug, Serialize)]
pub struct ReferenceItem {
    pub kind: &'static str,
    pub name: String,
    /// Null if this cannot be determined without running another program.
    pub set: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// JSON document of a configuration problem.
#[derive(Debug, Serialize)]
pub struct ProblemItem {
    pub code: &'static str,
    pub severity: &'static str,
    pub server: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    pub message: String,
    pub fix: Option<String>,
}

/// Keys with a dedicated member.
const DEDICATED_KEYS: [&str; 10] =
    ["type", "enabled", "disabled", "trust", "command", "args", "url", "env", "headers", "name"];

impl ConfiguredServerItem {
    pub fn new(server: &ConfiguredServer, config: &Config, environment: &Environment, secrets: SecretDisplay) -> Self {
        let mut entry = masking::mask_entry(&server.written, secrets);
        let mut take = |key: &str| entry.remove(key).unwrap_or_default();
        let [command, args, url, env, headers] = ["command", "args", "url", "env", "headers"].map(&mut take);
        let is_known = |key: &str| SERVER.iter().any(|field| field.name == key);
        let (others, unknown) = entry.into_iter().partition::<Map<_, _>, _>(|(key, _)| is_known(key));
        Self {
            id: server.name.to_string(),
            transport: transport_word(server),
            source: server.layer.source(),
            file: server.place.file.display().to_string(),
            line: server.place.at.line,
            state: state_word(server, config),
            enabled: server.enabled,
            approved: is_approved(server),
            trust: server.described.as_ref().is_ok_and(|described| described.trust),
            shadowed: is_shadowed(server, config),
            command,
            args,
            url,
            env,
            headers,
            others: others.into_iter().filter(|(key, _)| !DEDICATED_KEYS.contains(&key.as_str())).collect(),
            unknown,
            references: references(&server.written).iter().map(|one| reference(one, environment, secrets)).collect(),
            problems: problems_of_server(server, config).map(ProblemItem::new).collect(),
        }
    }

    /// Returns the command line or URL. Not escaped.
    pub fn target(&self) -> String {
        let words = std::iter::once(&self.command).chain(self.args.as_array().into_iter().flatten());
        let line: Vec<&str> = words.filter_map(Value::as_str).collect();
        let address = [Some(&self.url), self.others.get("httpUrl")].into_iter().flatten().find_map(Value::as_str);
        address.map_or_else(|| line.join(" "), str::to_owned)
    }
}

/// Returns the problems of a server in the file that defines it.
pub fn problems_of_server<'a>(
    server: &'a ConfiguredServer,
    config: &'a Config,
) -> impl Iterator<Item = &'a ConfigProblem> {
    config.problems.iter().filter(|problem| {
        let is_here = problem.place.as_ref().is_none_or(|place| place.file == server.place.file);
        is_here && problem.server.as_deref() == Some(server.name.as_str())
    })
}

/// Returns the state of a server as a word.
pub fn state_word(server: &ConfiguredServer, config: &Config) -> &'static str {
    match server.approval {
        _ if server.described.is_err() => "broken",
        ServerApproval::Needed => "unapproved",
        ServerApproval::Changed => "changed",
        _ if is_shadowed(server, config) => "replaced",
        _ if !server.enabled => "disabled",
        ServerApproval::NotNeeded | ServerApproval::Approved(_) => "enabled",
    }
}

/// Reports whether another entry of the same id is in effect instead.
pub fn is_shadowed(server: &ConfiguredServer, config: &Config) -> bool {
    config.server(server.name.as_str()).is_some_and(|counts| counts.place != server.place)
}

fn is_approved(server: &ConfiguredServer) -> bool {
    matches!(server.approval, ServerApproval::NotNeeded | ServerApproval::Approved(_))
}

fn reference(one: &MaskedReference, environment: &Environment, secrets: SecretDisplay) -> ReferenceItem {
    let set = one.is_set(environment);
    match one {
        MaskedReference::Secret(name) => ReferenceItem { kind: "secret", name: name.clone(), set, value: None },
        MaskedReference::Variable { name, .. } => {
            let value = environment.var(name).filter(|_| secrets == SecretDisplay::Revealed);
            let value = value.map(|value| value.to_string_lossy().into_owned());
            ReferenceItem { kind: "variable", name: name.clone(), set, value }
        }
    }
}

impl ProblemItem {
    pub fn new(problem: &ConfigProblem) -> Self {
        let place = problem.place.as_ref();
        Self {
            code: problem.code,
            severity: severity_word(problem.severity),
            server: problem.server.clone(),
            file: place.map(|place| place.file.display().to_string()),
            line: place.map(|place| place.at.line),
            column: place.map(|place| place.at.column),
            message: problem.text.clone(),
            fix: problem.fix.clone(),
        }
    }
}

/// Returns the severity as a word.
pub fn severity_word(severity: ProblemSeverity) -> &'static str {
    match severity {
        ProblemSeverity::Warning => "warning",
        ProblemSeverity::Error => "error",
    }
}
