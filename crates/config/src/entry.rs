//! Parsing of a server's entry.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wharf_spec::{BackoffSettings, HttpTransport, InstanceSettings, ServerSharing, closest_name};

use crate::entry_site::EntrySite;
use crate::fields::{BACKOFF, ConfigField, OAUTH, SERVER};
use crate::location::SourceLocation;
use crate::server_definition::{
    HttpDefinition, OauthDefinition, ServerDefinition, SourcedValue, StdioDefinition, TransportDefinition,
};
use crate::tree::{ConfigNode, ConfigValue, TextPosition};
use crate::validate::{ValidatedObject, ValidationFault, displayed_key, parse_integer, validate_object};

/// Content of an entry.
pub(crate) enum EntryContent {
    /// The entry only disables a server of a lower layer.
    Off,
    /// The entry defines a server.
    Server(Box<ServerDefinition>),
    /// The entry is invalid.
    Bad(Vec<ValidationFault>),
}

/// A parsed entry.
pub(crate) struct ParsedEntry {
    pub said: EntryContent,
    pub enabled: bool,
    /// Problems that do not make the entry invalid.
    pub warnings: Vec<ValidationFault>,
}

/// Minimum plausible timeout. A smaller value is probably meant in seconds.
const MIN_PLAUSIBLE_TIMEOUT: Duration = Duration::from_millis(100);

/// Parses the entry of the server with this id.
pub(crate) fn parse_entry(id: &str, node: &ConfigNode, file: &Arc<Path>, expands: bool) -> ParsedEntry {
    let ConfigValue::Map(members) = &node.value else {
        let fault = ValidationFault::new(
            "wrong_type",
            node.at,
            format!("`{}` is {}, not an object", displayed_key(id), node.value.type_name()),
        );
        return ParsedEntry { said: EntryContent::Bad(vec![fault]), enabled: true, warnings: Vec::new() };
    };
    let mut fields = validate_object(members, &[SERVER]);
    let enabled = fields.flag("enabled").unwrap_or(true) && !fields.flag("disabled").unwrap_or(false);
    let mut warnings = unknown_key_faults(&fields, SERVER);
    if !enabled && members.iter().all(|member| matches!(member.key.as_str(), "enabled" | "disabled")) {
        return ParsedEntry { said: EntryContent::Off, enabled, warnings };
    }
    let reading = EntryReader { id, at: node.at, file, fields: &fields };
    let reach = reading.reach();
    warnings.extend(reading.find_suspicious_values());
    let mut inner = reading.find_invalid_values();
    for (key, known) in [("reconnect", BACKOFF), ("oauth", OAUTH)] {
        let nested = validate_object(fields.map(key), &[known]);
        warnings.extend(unknown_key_faults(&nested, known));
        inner.extend(nested.faults);
    }
    let described = reach.map(|reach| reading.build_definition(reach, expands));
    let mut faults = std::mem::take(&mut fields.faults);
    faults.extend(inner);
    let said = match described {
        Ok(described) if faults.is_empty() => EntryContent::Server(Box::new(described)),
        Ok(_) => EntryContent::Bad(faults),
        Err(fault) => {
            faults.push(fault);
            EntryContent::Bad(faults)
        }
    };
    ParsedEntry { said, enabled, warnings }
}

/// Reports unknown keys, each with the most similar known key.
pub(crate) fn unknown_key_faults(fields: &ValidatedObject<'_>, known: &'static [ConfigField]) -> Vec<ValidationFault> {
    let names = || known.iter().flat_map(|field| std::iter::once(field.name).chain(field.also.iter().copied()));
    let fault = |member: &&crate::tree::ConfigMember| {
        let fault =
            ValidationFault::new("unknown_key", member.at, format!("unknown key `{}`", displayed_key(&member.key)));
        match closest_name(&member.key, names()) {
            Some(meant) => fault.fix(format!("did you mean `{meant}`?")),
            None => fault,
        }
    };
    fields.unknown.iter().filter(|member| !member.key.starts_with(['$', '_'])).map(fault).collect()
}

struct EntryReader<'a> {
    id: &'a str,
    at: TextPosition,
    file: &'a Arc<Path>,
    fields: &'a ValidatedObject<'a>,
}

/// Transport of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryTransport {
    Stdio,
    Http(HttpTransport),
}

impl EntryReader<'_> {
    fn with_location(&self, (text, at): (&str, TextPosition)) -> SourcedValue<String> {
        SourcedValue { value: text.to_owned(), place: SourceLocation { file: Arc::clone(self.file), at } }
    }

    fn template(&self, name: &str) -> Option<SourcedValue<String>> {
        self.fields.text(name).map(|found| self.with_location(found))
    }

    fn templates(&self, name: &str) -> Vec<SourcedValue<String>> {
        self.fields.texts(name).into_iter().map(|found| self.with_location(found)).collect()
    }

    fn map(&self, name: &str) -> Vec<(String, SourcedValue<String>)> {
        let members = self.fields.map(name).iter();
        members
            .filter_map(|member| Some((member.key.clone(), self.with_location((member.node.text()?, member.node.at)))))
            .collect()
    }

    fn strings(&self, name: &str) -> Vec<String> {
        self.fields.texts(name).into_iter().map(|(text, _)| text.to_owned()).collect()
    }

    fn reach(&self) -> Result<TransportDefinition, ValidationFault> {
        match self.transport_kind()? {
            EntryTransport::Stdio => self.stdio().map(|stdio| TransportDefinition::Stdio(Box::new(stdio))),
            EntryTransport::Http(form) => self.http(form).map(|http| TransportDefinition::Http(Box::new(http))),
        }
    }

    /// Returns the transport given by `type`, or else the one implied by the other keys.
    fn transport_kind(&self) -> Result<EntryTransport, ValidationFault> {
        let (command, url) =
            (self.fields.member("command"), self.fields.member("url").or(self.fields.member("httpUrl")));
        if let (Some(command), Some(url)) = (command, url) {
            let lines = (command.at.line, url.at.line);
            let text = format!(
                "`{}` has both `command` (line {}) and `{}` (line {})",
                displayed_key(self.id),
                lines.0,
                url.key,
                lines.1
            );
            let later = command.at.max(url.at);
            return Err(ValidationFault::new("two_transports", later, text)
                .fix("remove one: `command` is for a local server, `url` for a remote one"));
        }
        let inferred = match (command, url) {
            (Some(_), _) => Some(EntryTransport::Stdio),
            (None, Some(url)) if url.key == "httpUrl" => Some(EntryTransport::Http(HttpTransport::Streamable)),
            (None, Some(_)) => Some(EntryTransport::Http(HttpTransport::Automatic)),
            (None, None) => None,
        };
        match self.fields.text("type") {
            Some((word, at)) => self.transport_by_name(word, at),
            None => inferred.ok_or_else(|| {
                let text = format!("`{}` has neither `command` nor `url`", displayed_key(self.id));
                ValidationFault::new("no_transport", self.at, text)
                    .fix("set `command` (and `args`) for a local server, or `url` for a remote one")
            }),
        }
    }

    fn transport_by_name(&self, word: &str, at: TextPosition) -> Result<EntryTransport, ValidationFault> {
        Ok(match word {
            "stdio" => EntryTransport::Stdio,
            "http" | "streamable-http" | "streamableHttp" | "streamable_http" => {
                EntryTransport::Http(HttpTransport::Streamable)
            }
            "sse" => EntryTransport::Http(HttpTransport::Sse),
            "claudeai-proxy" | "sdk" => {
                let text = format!("the type `{word}` is internal to another program and not supported in a file");
                return Err(
                    ValidationFault::new("foreign_type", at, text).fix("remove the entry, or set `command` or `url`")
                );
            }
            other => {
                let text = format!("`{}` is not a supported server type", displayed_key(other));
                return Err(
                    ValidationFault::new("unknown_type", at, text).fix("use `stdio`, `http` or `sse`, or remove it")
                );
            }
        })
    }

    fn missing_key_fault(&self, key: &str, kind: &str) -> ValidationFault {
        let text = format!("missing `{key}` in {kind} server `{}`", displayed_key(self.id));
        ValidationFault::new("missing_key", self.at, text).fix(format!("add `\"{key}\": \"…\"`"))
    }

    fn stdio(&self) -> Result<StdioDefinition, ValidationFault> {
        let command = self.template("command").ok_or_else(|| self.missing_key_fault("command", "stdio"))?;
        if command.value.trim().is_empty() {
            return Err(ValidationFault::new("missing_key", command.place.at, "`command` is empty")
                .fix("name the program to start"));
        }
        Ok(StdioDefinition {
            command,
            args: self.templates("args"),
            cwd: self.template("cwd"),
            env: self.map("env"),
            env_vars: self.templates("envVars"),
            env_file: self.template("envFile"),
            inherit_env: self.fields.flag("inheritEnv").unwrap_or(false),
        })
    }

    fn http(&self, form: HttpTransport) -> Result<HttpDefinition, ValidationFault> {
        let url = self.template("url").or_else(|| self.template("httpUrl"));
        Ok(HttpDefinition {
            url: url.ok_or_else(|| self.missing_key_fault("url", "http"))?,
            form,
            headers: self.map("headers"),
            headers_command: self.templates("headersCommand"),
            proxy: self.template("proxy"),
            ca: self.templates("ca"),
            client_cert: self.template("clientCert"),
            mirror_arguments: self.fields.flag("mirrorArguments").unwrap_or(true),
            oauth: self.oauth(),
        })
    }

    fn oauth(&self) -> Option<OauthDefinition> {
        let member = self.fields.member("oauth")?;
        let fields = validate_object(member.node.members(), &[OAUTH]);
        let inner = EntryReader { fields: &fields, ..*self };
        let texts = OAUTH.iter().filter_map(|field| Some((field.name, inner.template(field.name)?))).collect();
        let callback_port = fields.count("callback_port").and_then(|port| u16::try_from(port).ok());
        Some(OauthDefinition { texts, callback_port })
    }

    fn instances(&self) -> InstanceSettings {
        let mut instances = InstanceSettings::default();
        instances.sharing = match self.fields.text("sharing") {
            Some(("user", _)) => ServerSharing::User,
            Some(("session", _)) => ServerSharing::Session,
            _ => ServerSharing::Shared,
        };
        instances.max_instances = self.fields.count("maxInstances").and_then(|count| usize::try_from(count).ok());
        instances
    }

    fn build_definition(&self, reach: TransportDefinition, expands: bool) -> ServerDefinition {
        let fields = self.fields;
        let timeouts = fields.map("toolTimeouts").iter();
        ServerDefinition {
            reach,
            site: EntrySite::default(),
            expands,
            trust: fields.flag("trust").unwrap_or(false),
            lazy: fields.flag("lazy").unwrap_or(false),
            debug: fields.flag("debug").unwrap_or(false),
            include_tools: fields.member("includeTools").map(|_| self.strings("includeTools")),
            exclude_tools: self.strings("excludeTools"),
            timeout: fields.millis("timeout"),
            tool_timeouts: timeouts
                .filter_map(|member| Some((member.key.clone(), Duration::from_millis(parse_integer(&member.node)?))))
                .collect(),
            startup_timeout: fields.millis("startupTimeoutMs"),
            max_message: fields.count("maxMessageBytes").and_then(|count| usize::try_from(count).ok()),
            max_concurrent: fields.count("maxConcurrent").and_then(|count| usize::try_from(count).ok()),
            reconnect: fields.member("reconnect").map(|member| reconnect(&member.node)),
            health_check: fields.millis("healthCheckMs"),
            idle_stop: fields.millis("idleStopMs"),
            keep_results: fields.millis("cacheTtlMs"),
            instances: self.instances(),
            unknown: fields.unknown.iter().map(|member| self.with_location((&member.key, member.at))).collect(),
        }
    }

    /// Reports values that cannot be passed to a program: invalid variable names and texts with a NUL.
    fn find_invalid_values(&self) -> Vec<ValidationFault> {
        let named = self.fields.map("env").iter().map(|member| (member.key.as_str(), member.at));
        let names = named.chain(self.fields.texts("envVars"));
        let bad = names.filter(|(name, _)| name.is_empty() || name.contains(['=', '\0'])).map(|(name, at)| {
            let text = format!("`{}` is not a valid variable name", displayed_key(name));
            ValidationFault::new("bad_variable", at, text).fix("use letters, digits and `_`")
        });
        let values = self.fields.map("env").iter().filter_map(|member| Some((member.node.text()?, member.node.at)));
        let own = ["command", "cwd", "envFile"].into_iter().filter_map(|key| self.fields.text(key));
        let lists = self.fields.texts("args").into_iter().chain(self.fields.texts("headersCommand"));
        let texts = own.chain(lists).chain(values).filter(|(text, _)| text.contains('\0'));
        bad.chain(
            texts.map(|(_, at)| ValidationFault::new("nul", at, "the value contains a NUL character").fix("remove it")),
        )
        .collect()
    }

    /// Reports keys of an HTTP entry that apply only to a process.
    fn find_ineffective_keys(&self) -> Vec<ValidationFault> {
        let is_http = self.fields.member("command").is_none()
            && ["url", "httpUrl"].iter().any(|key| self.fields.member(key).is_some());
        let keys = PROCESS_KEYS.iter().filter(|_| is_http).filter_map(|key| self.fields.member(key));
        keys.map(|member| {
            let text = format!("`{}` has no effect on an HTTP server, which is not started", member.key);
            let fix = "remove it; `headers` is what an HTTP server receives";
            ValidationFault::new("no_effect", member.node.at, text).fix(fix)
        })
        .collect()
    }

    /// Reports values that are valid but probably not intended.
    fn find_suspicious_values(&self) -> Vec<ValidationFault> {
        let mut odd = Vec::new();
        if let Some((command, at)) = self.fields.text("command") {
            if command.contains(char::is_whitespace) && !command.contains('/') && self.fields.member("args").is_none() {
                let text = "`command` contains spaces: it must be one program, not a shell command line";
                odd.push(ValidationFault::new("command_line", at, text).fix("move the arguments to `args`"));
            }
            if command.starts_with("~/") {
                odd.push(
                    ValidationFault::new("tilde", at, "`~` is not expanded in `command`").fix("use ${HOME} instead"),
                );
            }
        }
        if let (Some(time), Some(member)) = (self.fields.millis("timeout"), self.fields.member("timeout"))
            && time < MIN_PLAUSIBLE_TIMEOUT
        {
            let millis = time.as_millis();
            let text = format!("`{}` is in milliseconds: {millis} ms is probably too short", member.key);
            odd.push(
                ValidationFault::new("short_timeout", member.node.at, text)
                    .fix(format!("write {} for {millis} s", millis * 1000)),
            );
        }
        odd.extend(self.find_ineffective_keys());
        odd
    }
}

/// Keys that apply only to a server that is started.
const PROCESS_KEYS: [&str; 6] = ["args", "cwd", "env", "envVars", "envFile", "inheritEnv"];

/// Reads `reconnect`: a boolean, or an object of backoff settings. Missing members have their defaults.
fn reconnect(node: &ConfigNode) -> Result<BackoffSettings, bool> {
    match node.value {
        ConfigValue::Bool(flag) => Err(flag),
        _ => Ok(backoff(node)),
    }
}

pub(crate) fn backoff(node: &ConfigNode) -> BackoffSettings {
    let fields = validate_object(node.members(), &[BACKOFF]);
    let usual = BackoffSettings::default();
    BackoffSettings {
        attempts: fields.count("attempts").and_then(|count| u32::try_from(count).ok()).unwrap_or(usual.attempts),
        base: fields.millis("baseMs").unwrap_or(usual.base),
        max: fields.millis("maxMs").unwrap_or(usual.max),
    }
}
