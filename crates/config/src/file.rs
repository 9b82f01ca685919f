//! Interpretation of one configuration file: servers, rules, settings and problems.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use wharf_spec::{InvalidServerName, ServerName, closest_name};

use crate::entry::{self, EntryContent, ParsedEntry, backoff};
use crate::fields::{BACKOFF, ConfigField, ConfigFieldKind, FILE, MCP, PROFILE, RULE, SERVE, USER};
use crate::layer::Layer;
use crate::location::SourceLocation;
use crate::provider::{self, ParsedProvider};
use crate::settings::{GlobalSettings, ProfileSettings, RuleText};
use crate::tree::{ConfigMember, ConfigNode, ConfigValue, TextPosition};
use crate::validate::{ValidatedObject, ValidationFault, displayed_key, validate_object};
use crate::{ConfigProblem, ProblemSeverity};

/// Highest supported version of a file.
const SUPPORTED_VERSION: u64 = 1;
/// Tool name for a user's rule without a valid one.
const EVERY_TOOL: &str = "mcp__*";

/// Content of a configuration file.
pub(crate) struct FileContent {
    pub servers: Vec<FileServer>,
    pub settings: GlobalSettings,
    pub problems: Vec<ConfigProblem>,
}

/// A server of a configuration file.
pub(crate) struct FileServer {
    pub name: ServerName,
    pub place: SourceLocation,
    pub enabled: bool,
    /// All servers under `mcp` in the file are disabled.
    pub file_is_off: bool,
    pub written: serde_json::Map<String, serde_json::Value>,
    pub said: Result<EntryContent, Vec<ConfigProblem>>,
}

/// Interprets the file of a layer. The `WHARF_MCP_SERVERS` variable may hold servers without an enclosing object.
pub(crate) fn interpret(node: &ConfigNode, file: &Arc<Path>, layer: Layer) -> FileContent {
    let mut reading = FileInterpreter {
        file,
        layer,
        content: FileContent { servers: Vec::new(), settings: GlobalSettings::default(), problems: Vec::new() },
        known: HashMap::new(),
    };
    reading.read(node);
    reading.content
}

struct FileInterpreter<'a> {
    file: &'a Arc<Path>,
    layer: Layer,
    content: FileContent,
    /// Indices of the servers by lower-case name.
    known: HashMap<String, Vec<usize>>,
}

/// Complaint about an invalid rule.
const RULE_SHAPE: &str =
    "a rule must be an object with `tool`, `action` (allow, ask or deny) and optionally `pattern` and `definedIn`";

impl FileInterpreter<'_> {
    fn read(&mut self, node: &ConfigNode) {
        let is_bare =
            self.layer == Layer::Variable && node.member("mcpServers").is_none() && node.member("mcp").is_none();
        if is_bare {
            return self
                .servers(node, ServerContext { expands: true, is_off: false, settings: &GlobalSettings::default() });
        }
        let ConfigValue::Map(members) = &node.value else {
            let text = format!("the file is {}, not an object", node.value.type_name());
            self.content.settings.unread = self.layer.is_user_file();
            return self.push_problem(&ValidationFault::new("wrong_type", node.at, text), ProblemSeverity::Error, None);
        };
        let fields = validate_object(members, &[FILE, USER]);
        self.report_key_problems(&fields);
        if self.is_newer(&fields) {
            return;
        }
        self.settings(&fields);
        self.report_nested_problems(&fields, "reconnect", BACKOFF);
        self.report_nested_problems(&fields, "serve", SERVE);
        self.rules(fields.list("permissions"));
        self.deny_unread_rules(members, fields.member("permissions"));
        let expands = fields.flag("expandEnv").unwrap_or(true);
        self.providers(&fields, expands);
        self.profiles(&fields);
        let mcp = validate_object(fields.map("mcp"), &[MCP]);
        self.report_key_problems(&mcp);
        let own = self.global_settings(&mcp);
        if let Some(member) = fields.member("mcpServers") {
            self.servers(&member.node, ServerContext { expands, is_off: false, settings: &own });
        }
        if let Some(member) = mcp.member("servers") {
            let is_off = !mcp.flag("enabled").unwrap_or(true);
            self.servers(&member.node, ServerContext { expands, is_off, settings: &own });
        }
    }

    fn is_newer(&mut self, fields: &ValidatedObject<'_>) -> bool {
        let newer = ["version", "schema"].into_iter().find_map(|key| {
            let member = fields.member(key)?;
            fields.count(key).filter(|version| *version > SUPPORTED_VERSION).map(|version| (member, version))
        });
        let Some((member, version)) = newer else { return false };
        let text =
            format!("`{}` is {version}, but this version of Wharf supports only {SUPPORTED_VERSION}", member.key);
        let fault = ValidationFault::new("newer_version", member.node.at, text)
            .fix("upgrade Wharf. The file is ignored until then");
        self.push_problem(&fault, ProblemSeverity::Error, None);
        self.content.settings.unread = self.layer.is_user_file();
        true
    }

    /// Reports problems with the keys of an object.
    fn report_key_problems(&mut self, fields: &ValidatedObject<'_>) {
        for fault in &fields.faults {
            self.push_problem(fault, ProblemSeverity::Error, None);
        }
        for member in fields.unknown.iter().filter(|member| !member.key.starts_with('_')) {
            let names = [FILE, USER].into_iter().flatten().map(|field: &ConfigField| field.name);
            let fault =
                ValidationFault::new("unknown_key", member.at, format!("unknown key `{}`", displayed_key(&member.key)));
            let fix = match (member.key.as_str(), closest_name(&member.key, names)) {
                ("servers" | "context_servers" | "mcp_servers" | "extensions", _) => {
                    Some("use `wharf import` for files of other programs".to_owned())
                }
                (_, Some(meant)) => Some(format!("did you mean `{meant}`?")),
                _ => None,
            };
            self.push_problem(&ValidationFault { fix, ..fault }, ProblemSeverity::Warning, None);
        }
    }

    /// Reads the settings. They are valid in the user's files only, and ignored with a warning in a project's file.
    fn settings(&mut self, fields: &ValidatedObject<'_>) {
        if self.layer.needs_approval() {
            for member in USER.iter().filter_map(|field| fields.member(field.name)) {
                let text = format!("`{}` is valid in your own configuration only", member.key);
                self.push_problem(
                    &ValidationFault::new("not_a_projects", member.at, text),
                    ProblemSeverity::Warning,
                    None,
                );
            }
            return;
        }
        let settings = &mut self.content.settings;
        let text = |name: &str| fields.text(name).map(|(text, _)| text.to_owned());
        settings.tool_names = text("toolNames");
        settings.token_store = text("tokenStore");
        settings.model = text("model");
        settings.health_check = fields.millis("healthCheckMs");
        settings.keep_results = fields.millis("cacheTtlMs");
        settings.result_limit = fields.count("resultLimit").and_then(|count| usize::try_from(count).ok());
        settings.reconnect = fields.member("reconnect").map(|member| backoff(&member.node));
        settings.wait_for_answer = validate_object(fields.map("serve"), &[SERVE]).millis("waitForAnswerMs");
        settings.secret_command = fields
            .member("secretCommand")
            .map(|_| fields.texts("secretCommand").into_iter().map(|(text, _)| text.to_owned()).collect());
    }

    /// Reads the model providers. An invalid provider affects no other, and is also reported when it is selected.
    fn providers(&mut self, fields: &ValidatedObject<'_>, expands: bool) {
        if self.layer.needs_approval() {
            return;
        }
        let mut names = HashSet::new();
        for member in fields.map("providers").iter().filter(|member| names.insert(&member.key)) {
            let ParsedProvider { provider, warnings } = provider::parse_provider(member, self.file, expands);
            warnings.iter().for_each(|fault| self.push_problem(fault, ProblemSeverity::Warning, None));
            let problems = |faults: Vec<ValidationFault>| -> Vec<ConfigProblem> {
                faults.iter().map(|fault| self.problem(fault, ProblemSeverity::Error, None)).collect()
            };
            let provider = provider.map_err(problems);
            self.content.problems.extend(provider.as_ref().err().into_iter().flatten().cloned());
            self.content.settings.providers.push((member.key.clone(), provider));
        }
    }

    /// Reads the profiles of `wharf serve`. An invalid profile affects no other, and cannot be used.
    fn profiles(&mut self, fields: &ValidatedObject<'_>) {
        if self.layer.needs_approval() {
            return;
        }
        let mut names = HashSet::new();
        for member in fields.map("profiles").iter().filter(|member| names.insert(&member.key)) {
            let profile = self.profile(member);
            self.content.settings.profiles.push((member.key.clone(), profile));
        }
    }

    fn profile(&mut self, member: &ConfigMember) -> Result<ProfileSettings, Vec<ConfigProblem>> {
        let ConfigValue::Map(members) = &member.node.value else {
            let name = displayed_key(&member.key);
            let text = format!("`{name}` is {}, not an object", member.node.value.type_name());
            let fault = ValidationFault::new("wrong_type", member.node.at, text);
            self.push_problem(&fault, ProblemSeverity::Error, None);
            return Err(vec![self.problem(&fault, ProblemSeverity::Error, None)]);
        };
        let fields = validate_object(members, &[PROFILE]);
        // An unknown key may be a restriction that is misspelt.
        let mut faults: Vec<_> =
            fields.faults.iter().cloned().chain(entry::unknown_key_faults(&fields, PROFILE)).collect();
        let rules: Vec<_> = fields.list("rules").iter().map(|rule| (rule, self.rule(rule))).collect();
        let unread = rules.iter().filter(|(_, parsed)| parsed.is_none());
        faults.extend(unread.map(|(rule, _)| ValidationFault::new("bad_rule", rule.at, RULE_SHAPE)));
        if !faults.is_empty() {
            faults.iter().for_each(|fault| self.push_problem(fault, ProblemSeverity::Error, None));
            return Err(faults.iter().map(|fault| self.problem(fault, ProblemSeverity::Error, None)).collect());
        }
        let texts = |name: &str| fields.texts(name).into_iter().map(|(text, _)| text.to_owned()).collect();
        Ok(ProfileSettings {
            servers: texts("servers"),
            tools: texts("tools"),
            exclude_tools: texts("excludeTools"),
            plain_names: fields.text("names").map(|(names, _)| names == "plain"),
            wait_for_answer: fields.millis("waitForAnswerMs"),
            rules: rules.into_iter().filter_map(|(_, rule)| rule).collect(),
            searches_tools: fields.text("surface").is_some_and(|(surface, _)| surface == "search"),
        })
    }

    /// Reports problems inside a setting.
    fn report_nested_problems(&mut self, fields: &ValidatedObject<'_>, key: &str, known: &'static [ConfigField]) {
        let nested = validate_object(fields.map(key), &[known]);
        nested.faults.iter().for_each(|fault| self.push_problem(fault, ProblemSeverity::Error, None));
        entry::unknown_key_faults(&nested, known)
            .iter()
            .for_each(|fault| self.push_problem(fault, ProblemSeverity::Warning, None));
    }

    /// Reads `globalSettings`, which apply to the servers of the file. Those of the user apply to all servers.
    fn global_settings(&mut self, mcp: &ValidatedObject<'_>) -> GlobalSettings {
        let Some(ConfigField { kind: ConfigFieldKind::Object(known), .. }) =
            MCP.iter().find(|field| field.name == "globalSettings")
        else {
            return GlobalSettings::default();
        };
        let fields = validate_object(mcp.map("globalSettings"), &[known]);
        self.report_key_problems(&fields);
        let own = GlobalSettings {
            timeout: fields.millis("timeout"),
            debug: fields.flag("debug").unwrap_or(false),
            ..GlobalSettings::default()
        };
        if !self.layer.needs_approval() {
            (self.content.settings.timeout, self.content.settings.debug) = (own.timeout, own.debug);
        }
        own
    }

    fn rules(&mut self, rules: &[ConfigNode]) {
        for rule in rules {
            match self.rule(rule) {
                Some(rule) => self.content.settings.rules.push(rule),
                None => {
                    let fields = validate_object(rule.members(), &[RULE]);
                    self.bad_rule(rule.at, fields.text("tool").map(|(text, _)| text.to_owned()));
                }
            }
        }
    }

    /// Reads a rule. `None` if it is invalid.
    fn rule(&self, rule: &ConfigNode) -> Option<RuleText> {
        let fields = validate_object(rule.members(), &[RULE]);
        let text = |name: &str| fields.text(name).map(|(text, _)| text.to_owned());
        if !fields.unknown.is_empty() || !fields.faults.is_empty() {
            return None;
        }
        let (tool, action) = (text("tool")?, text("action")?);
        let (place, from_project) = (self.place(rule.at), self.layer.needs_approval());
        let (pattern, defined_in) = (text("pattern"), text("definedIn"));
        Some(RuleText { tool, pattern, action, defined_in, place, from_project })
    }

    /// Adds denies for `permissions` that are not a list or occur a second time. The problem is already reported, and
    /// the denied calls are unknown.
    fn deny_unread_rules(&mut self, members: &[ConfigMember], counted: Option<&ConfigMember>) {
        let counted = counted.map(|member| member.at);
        let is_lost = |member: &&ConfigMember| {
            member.key == "permissions" && member.node.value != ConfigValue::Null && Some(member.at) != counted
        };
        members.iter().filter(is_lost).for_each(|member| self.deny(self.unknown_tool().to_owned(), member.at));
    }

    /// Returns the tool name for a rule without one. A rule of the user then denies all server tools. A rule of a
    /// project may not do so and gets no name: calls of the project's own servers then require a question.
    fn unknown_tool(&self) -> &'static str {
        if self.layer.needs_approval() { "" } else { EVERY_TOOL }
    }

    /// Reports an invalid rule and denies its tool, because the rule may have been a deny.
    fn bad_rule(&mut self, at: TextPosition, tool: Option<String>) {
        let tool = tool.unwrap_or_else(|| self.unknown_tool().to_owned());
        let fix = match tool.as_str() {
            "" => {
                "fix or remove the rule. Until then, calls of the project's own servers ask for permission".to_owned()
            }
            tool => format!("fix or remove the rule. Until then, `{}` is denied", displayed_key(tool)),
        };
        self.push_problem(&ValidationFault::new("bad_rule", at, RULE_SHAPE).fix(fix), ProblemSeverity::Error, None);
        self.deny(tool, at);
    }

    fn deny(&mut self, tool: String, at: TextPosition) {
        let (place, from_project) = (self.place(at), self.layer.needs_approval());
        let action = "deny".to_owned();
        let rule = RuleText { tool, pattern: None, action, defined_in: None, place, from_project };
        self.content.settings.rules.push(rule);
    }

    fn servers(&mut self, node: &ConfigNode, switches: ServerContext<'_>) {
        match &node.value {
            ConfigValue::Map(members) => {
                for member in members {
                    self.server(&member.key, member.at, &member.node, switches);
                }
            }
            ConfigValue::List(items) => {
                for item in items {
                    match item.member("name").and_then(|member| Some((member.node.text()?, member.node.at))) {
                        Some((name, at)) => self.server(name, at, item, switches),
                        None => {
                            let fault = ValidationFault::new("no_name", item.at, "a server in a list has no `name`");
                            self.push_problem(&fault.fix("add `\"name\": \"…\"`"), ProblemSeverity::Error, None);
                        }
                    }
                }
            }
            other => {
                let text = format!("servers must be an object, not {}", other.type_name());
                self.push_problem(&ValidationFault::new("wrong_type", node.at, text), ProblemSeverity::Error, None);
            }
        }
    }

    fn server(&mut self, id: &str, at: TextPosition, node: &ConfigNode, switches: ServerContext<'_>) {
        let name = match ServerName::new(id) {
            Ok(name) => name,
            Err(error) => return self.bad_name(id, at, &error),
        };
        let ParsedEntry { mut said, enabled, warnings } = entry::parse_entry(id, node, self.file, switches.expands);
        for warning in &warnings {
            self.push_problem(warning, ProblemSeverity::Warning, Some(id));
        }
        if let EntryContent::Server(described) = &mut said {
            described.timeout = described.timeout.or(switches.settings.timeout);
        }
        let place = self.place(at);
        let said = match said {
            EntryContent::Bad(faults) => {
                Err(faults.iter().map(|fault| self.problem(fault, ProblemSeverity::Error, Some(id))).collect())
            }
            said => Ok(said),
        };
        let server = FileServer {
            name,
            place,
            enabled: enabled && !switches.is_off,
            file_is_off: switches.is_off,
            written: object(node),
            said,
        };
        self.add(server, at);
    }

    fn add(&mut self, server: FileServer, at: TextPosition) {
        let alike = self.known.entry(server.name.as_str().to_ascii_lowercase()).or_default();
        let same = alike.iter().copied().find(|other| self.content.servers[*other].name == server.name);
        if let Some(first) = same {
            return self.mark_duplicate(first, at);
        }
        let other = alike.first().map(|other| &self.content.servers[*other]);
        let likeness = other.map(|FileServer { name, place, .. }| {
            let text = format!("`{}` differs from `{name}` on line {} only by case", server.name, place.at.line);
            ValidationFault::new("alike", at, text)
        });
        alike.push(self.content.servers.len());
        if let Some(fault) = likeness {
            self.push_problem(&fault, ProblemSeverity::Warning, Some(server.name.as_str()));
        }
        self.content.servers.push(server);
    }

    /// Reports a duplicate name. Neither of the two entries is used.
    fn mark_duplicate(&mut self, first: usize, at: TextPosition) {
        let server = &self.content.servers[first];
        let id = server.name.to_string();
        let text = format!("`{id}` is defined twice: on line {} and on line {}", server.place.at.line, at.line);
        let fault = ValidationFault::new("duplicate_id", at, text).fix("remove or rename one of them");
        let problem = self.problem(&fault, ProblemSeverity::Error, Some(&id));
        self.content.servers[first].said = Err(vec![problem]);
    }

    fn bad_name(&mut self, id: &str, at: TextPosition, error: &InvalidServerName) {
        let fault = ValidationFault::new("bad_id", at, error.to_string()).fix("rename it");
        self.push_problem(&fault, ProblemSeverity::Error, Some(&displayed_key(id)));
    }

    fn place(&self, at: TextPosition) -> SourceLocation {
        SourceLocation { file: Arc::clone(self.file), at }
    }

    fn problem(&self, fault: &ValidationFault, severity: ProblemSeverity, server: Option<&str>) -> ConfigProblem {
        ConfigProblem {
            code: fault.code,
            severity,
            place: Some(self.place(fault.at)),
            server: server.map(str::to_owned),
            text: fault.text.clone(),
            fix: fault.fix.clone(),
        }
    }

    fn push_problem(&mut self, fault: &ValidationFault, severity: ProblemSeverity, server: Option<&str>) {
        let problem = self.problem(fault, severity, server);
        self.content.problems.push(problem);
    }
}

/// Context for the servers of a file.
#[derive(Clone, Copy)]
struct ServerContext<'a> {
    expands: bool,
    is_off: bool,
    settings: &'a GlobalSettings,
}

/// Converts a value to JSON.
fn json(node: &ConfigNode) -> serde_json::Value {
    match &node.value {
        ConfigValue::Null => serde_json::Value::Null,
        ConfigValue::Bool(flag) => (*flag).into(),
        ConfigValue::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| text.clone().into()),
        ConfigValue::Text(text) => text.clone().into(),
        ConfigValue::List(items) => items.iter().map(json).collect(),
        ConfigValue::Map(_) => object(node).into(),
    }
}

fn object(node: &ConfigNode) -> serde_json::Map<String, serde_json::Value> {
    node.members().iter().map(|ConfigMember { key, node, .. }| (key.clone(), json(node))).collect()
}
