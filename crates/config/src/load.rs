//! Loading and merging of all configuration layers.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wharf_spec::{Environment, ServerName};
use wharf_store::{Document, DocumentPrivacy};

use crate::approval_lookup::ApprovalLookup;
use crate::entry::EntryContent;
use crate::file::{FileContent, FileServer, interpret};
use crate::format::{FileFormat, decode, parse_text};
use crate::last_good_cache::LastGoodCache;
use crate::location::SourceLocation;
use crate::tree::TextPosition;
use crate::{
    ConfigPaths, ConfigProblem, ConfiguredServer, EntrySite, GlobalSettings, Layer, ProblemSeverity, ServerApproval,
};

/// Name of the variable that forms a layer.
const VARIABLE: &str = "WHARF_MCP_SERVERS";
/// Maximum bytes of a configuration file.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The merged configuration of all layers.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Config {
    /// Effective servers, one per name, sorted by name.
    pub servers: Vec<ConfiguredServer>,
    /// Servers without effect: overridden by a higher layer, or unapproved or disabled by their file while a lower
    /// layer has a server of that name.
    pub beside: Vec<ConfiguredServer>,
    /// Settings for all servers.
    pub settings: GlobalSettings,
    /// Files that were looked for, from lowest to highest precedence.
    pub layers: Vec<LayerStatus>,
    /// All problems.
    pub problems: Vec<ConfigProblem>,
}

/// A layer and its presence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerStatus {
    /// The layer.
    pub layer: Layer,
    /// File of the layer, or name of its variable.
    pub file: PathBuf,
    /// Set if the layer exists.
    pub found: bool,
}

/// Loads all layers. Blocks.
pub fn load(places: &ConfigPaths, around: &Environment) -> Config {
    reload(places, around, &mut LastGoodCache::default())
}

/// Loads all layers again. For a file that is missing or unreadable, its last good content applies. Blocks.
pub(crate) fn reload(places: &ConfigPaths, around: &Environment, memory: &mut LastGoodCache) -> Config {
    let mut loading = LayerMerger {
        places,
        standings: ApprovalLookup::new(places, around),
        config: Config::default(),
        by_name: BTreeMap::new(),
        spelt: HashMap::new(),
    };
    loading.config.settings.rule_file.clone_from(&places.user);
    for source in sources(places) {
        loading.merge_layer(source, places, memory);
    }
    loading.finish()
}

impl Config {
    /// Returns the effective server of this name.
    pub fn server(&self, name: &str) -> Option<&ConfiguredServer> {
        let found = self.servers.binary_search_by(|server| server.name.as_str().cmp(name));
        found.ok().map(|position| &self.servers[position])
    }

    /// Reports whether both configurations are equal.
    pub(crate) fn has_same_content(&self, other: &Self) -> bool {
        let Self { servers, beside, settings, layers, problems } = self;
        *servers == other.servers
            && *beside == other.beside
            && *settings == other.settings
            && *layers == other.layers
            && *problems == other.problems
    }
}

/// One source to load.
struct LayerSource {
    layer: Layer,
    file: PathBuf,
    /// Set if the file was given explicitly and must exist.
    named: bool,
    /// The text itself, if the source is not a file.
    text: Option<String>,
    /// Set if only settings and rules are used.
    no_servers: bool,
}

fn sources(places: &ConfigPaths) -> Vec<LayerSource> {
    let file = |layer, file: PathBuf, named| LayerSource { layer, file, named, text: None, no_servers: false };
    let mut all = Vec::new();
    // In the home directory, the project's shared file is the user's own file.
    let home_is_project = places.home.as_deref().is_some_and(|home| is_same_file(home, &places.shared_file()));
    let user_is_project = is_same_file(&places.user, &places.project_file());
    if !places.only_flags {
        all.extend(places.home.clone().map(|home| file(Layer::Home, home, false)));
    }
    if !places.user.as_os_str().is_empty() {
        all.push(LayerSource {
            no_servers: places.only_flags,
            ..file(Layer::User, places.user.clone(), places.user_was_named)
        });
    }
    if !places.only_flags {
        all.extend((!home_is_project).then(|| file(Layer::ProjectShared, places.shared_file(), false)));
        all.extend((!user_is_project).then(|| file(Layer::Project, places.project_file(), false)));
    }
    all.extend(places.flags.iter().map(|flag| file(Layer::Flag, flag.clone(), true)));
    if let Some(text) = &places.variable {
        all.push(LayerSource { text: Some(text.clone()), ..file(Layer::Variable, VARIABLE.into(), false) });
    }
    all
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

struct LayerMerger<'a> {
    places: &'a ConfigPaths,
    standings: ApprovalLookup<'a>,
    config: Config,
    by_name: BTreeMap<ServerName, ConfiguredServer>,
    /// First name of each spelling, by lower-case name.
    spelt: HashMap<String, ServerName>,
}

impl LayerMerger<'_> {
    fn merge_layer(&mut self, source: LayerSource, places: &ConfigPaths, memory: &mut LastGoodCache) {
        let content = load_content(&source, places, memory);
        let found = !matches!(content, Ok(None));
        self.config.layers.push(LayerStatus { layer: source.layer, file: source.file.clone(), found });
        match content {
            Ok(Some(content)) => self.merge_content(content, &source),
            // An editor that saves a file may remove it for a moment, but not its directory.
            Ok(None)
                if source.layer.needs_approval() && source.file.parent().is_some_and(|parent| !parent.exists()) =>
            {
                memory.forget(&source.file);
            }
            Ok(None) => {
                if let Some(content) = last_good_content(&source, memory) {
                    self.config.problems.push(file_gone_problem(&source));
                    self.merge_content(content, &source);
                }
            }
            Err(mut problem) => {
                let before = last_good_content(&source, memory);
                let is_lost = before.is_none() && problem.code != "missing_file";
                self.config.settings.unread |= is_lost && source.layer.is_user_file();
                problem.text.push_str(if before.is_some() { ", using its last valid content" } else { "" });
                self.config.problems.push(problem);
                before.into_iter().for_each(|content| self.merge_content(content, &source));
            }
        }
    }

    fn merge_content(&mut self, content: FileContent, source: &LayerSource) {
        self.config.problems.extend(content.problems);
        merge_settings(&mut self.config.settings, content.settings);
        if !source.no_servers {
            for server in content.servers {
                self.merge_server(server, source);
            }
        }
    }

    fn merge_server(&mut self, server: FileServer, source: &LayerSource) {
        let described = match server.said {
            Ok(EntryContent::Off) => return self.disable_lower(&server.name, &server.place),
            Ok(EntryContent::Server(mut described)) => {
                described.site = EntrySite::new(self.places, source.layer, &source.file, &server.name);
                Ok(*described)
            }
            Ok(EntryContent::Bad(_)) => Err(Vec::new()),
            Err(problems) => Err(problems),
        };
        let is_projects = source.layer.needs_approval();
        let approval = match &described {
            Ok(described) if is_projects || described.refers_to_project() => {
                self.standings.status_of(&source.file, &server.name, described)
            }
            Err(_) if is_projects => ServerApproval::Needed,
            _ => ServerApproval::NotNeeded,
        };
        let configured = ConfiguredServer {
            name: server.name.clone(),
            layer: source.layer,
            place: server.place,
            enabled: server.enabled,
            approval,
            written: server.written,
            described,
        };
        self.warn_about_similar_name(&configured);
        self.config.problems.extend(configured.described.as_ref().err().into_iter().flatten().cloned());
        let counts = matches!(approval, ServerApproval::NotNeeded | ServerApproval::Approved(_)) && !server.file_is_off;
        match self.by_name.get_mut(&server.name) {
            Some(lower) if counts => {
                let lower = std::mem::replace(lower, configured);
                self.config.beside.push(lower);
            }
            Some(_) => self.config.beside.push(configured),
            None => {
                self.by_name.insert(server.name, configured);
            }
        }
    }

    fn disable_lower(&mut self, name: &ServerName, place: &SourceLocation) {
        if let Some(lower) = self.by_name.get_mut(name) {
            lower.enabled = false;
            return;
        }
        self.config.problems.push(ConfigProblem {
            code: "nothing_to_switch_off",
            severity: ProblemSeverity::Warning,
            place: Some(place.clone()),
            server: Some(name.to_string()),
            text: format!("`{name}` is disabled here, but no lower layer defines it"),
            fix: None,
        });
    }

    /// Warns about a name that differs from one of another layer only by case.
    fn warn_about_similar_name(&mut self, server: &ConfiguredServer) {
        let spelt = self.spelt.entry(server.name.as_str().to_ascii_lowercase());
        let other = &*spelt.or_insert_with(|| server.name.clone());
        let Some(configured) = self.by_name.get(other).filter(|configured| configured.place.file != server.place.file)
        else {
            return;
        };
        if *other == server.name {
            return;
        }
        self.config.problems.push(ConfigProblem {
            code: "alike",
            severity: ProblemSeverity::Warning,
            place: Some(server.place.clone()),
            server: Some(server.name.to_string()),
            text: format!("`{}` differs from `{other}` ({}) only by case", server.name, configured.place),
            fix: None,
        });
    }

    fn finish(mut self) -> Config {
        self.config.problems.extend(self.standings.take_problem());
        self.config.servers = self.by_name.into_values().collect();
        self.config
    }
}

/// Returns the last good content of a file.
fn last_good_content(source: &LayerSource, memory: &LastGoodCache) -> Option<FileContent> {
    memory.get(&source.file).and_then(|bytes| interpret_bytes(source, bytes).ok())
}

/// Returns the problem for a file that no longer exists. Some editors delete a file for a moment when they save it.
fn file_gone_problem(source: &LayerSource) -> ConfigProblem {
    ConfigProblem {
        code: "file_gone",
        severity: ProblemSeverity::Warning,
        place: Some(SourceLocation { file: Arc::from(source.file.as_path()), at: TextPosition::START }),
        server: None,
        text: "the file no longer exists, using its last valid content".to_owned(),
        fix: Some("restore the file, or restart".to_owned()),
    }
}

/// Returns the content of a source, or `None` if it is missing and not required.
fn load_content(
    source: &LayerSource,
    places: &ConfigPaths,
    memory: &mut LastGoodCache,
) -> Result<Option<FileContent>, ConfigProblem> {
    let bytes = match &source.text {
        Some(text) => text.clone().into_bytes(),
        None => match read_source_bytes(source, places)? {
            Some(bytes) => bytes,
            None => return Ok(None),
        },
    };
    let content = interpret_bytes(source, &bytes)?;
    memory.store(&source.file, bytes);
    Ok(Some(content))
}

/// Parses and interprets the bytes of a source.
fn interpret_bytes(source: &LayerSource, bytes: &[u8]) -> Result<FileContent, ConfigProblem> {
    let file: Arc<Path> = Arc::from(source.file.as_path());
    let format = if source.layer == Layer::Flag { FileFormat::from_path(&source.file) } else { FileFormat::Json };
    let node = decode(bytes).and_then(|text| parse_text(text, format)).map_err(|error| ConfigProblem {
        code: "unreadable",
        severity: ProblemSeverity::Error,
        place: Some(SourceLocation { file: Arc::clone(&file), at: error.at }),
        server: None,
        text: error.text,
        fix: None,
    })?;
    Ok(interpret(&node, &file, source.layer))
}

fn read_source_bytes(source: &LayerSource, places: &ConfigPaths) -> Result<Option<Vec<u8>>, ConfigProblem> {
    let file = source.file.as_path();
    if source.layer.needs_approval() && links_outside(file, &places.project) {
        let text = "not read: the link points outside of the project";
        return Err(file_problem(file, "leads_out", text).with_fix("replace the link with a file"));
    }
    match read_file_bytes(file)? {
        None if source.named => Err(file_problem(file, "missing_file", "file not found").with_fix("check the path")),
        found => Ok(found),
    }
}

/// Reads a text file of limited size. Returns `None` if the file does not exist. Blocks, but rejects special files such
/// as pipes without waiting.
///
/// # Errors
/// Returns a [`ConfigProblem`] if the file cannot be read or is not UTF-8.
pub fn read_file(file: &Path) -> Result<Option<String>, ConfigProblem> {
    let Some(bytes) = read_file_bytes(file)? else { return Ok(None) };
    decode(&bytes).map(|text| Some(text.to_owned())).map_err(|error| file_problem(file, "unreadable", &error.text))
}

fn read_file_bytes(file: &Path) -> Result<Option<Vec<u8>>, ConfigProblem> {
    let loaded = Document::new(file, DocumentPrivacy::Shared).with_limit(MAX_FILE_BYTES).load();
    loaded.map(|loaded| loaded.map(|loaded| loaded.bytes)).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        file_problem(file, "unreadable_file", &format!("{error}{cause}"))
    })
}

fn file_problem(file: &Path, code: &'static str, text: &str) -> ConfigProblem {
    ConfigProblem {
        code,
        severity: ProblemSeverity::Error,
        place: Some(SourceLocation { file: Arc::from(file), at: TextPosition::START }),
        server: None,
        text: text.to_owned(),
        fix: None,
    }
}

/// Reports whether a project's file resolves to a location outside of the project.
fn links_outside(file: &Path, project: &Path) -> bool {
    match (file.canonicalize(), project.canonicalize()) {
        (Ok(file), Ok(project)) => !file.starts_with(project),
        _ => false,
    }
}

/// Merges the settings of a higher layer into those of the lower ones. Rules are appended.
fn merge_settings(lower: &mut GlobalSettings, higher: GlobalSettings) {
    fn put<T>(lower: &mut Option<T>, higher: Option<T>) {
        if higher.is_some() {
            *lower = higher;
        }
    }
    lower.debug |= higher.debug;
    lower.unread |= higher.unread;
    lower.rules.extend(higher.rules);
    put(&mut lower.timeout, higher.timeout);
    put(&mut lower.tool_names, higher.tool_names);
    put(&mut lower.health_check, higher.health_check);
    put(&mut lower.result_limit, higher.result_limit);
    put(&mut lower.keep_results, higher.keep_results);
    put(&mut lower.reconnect, higher.reconnect);
    put(&mut lower.token_store, higher.token_store);
    put(&mut lower.secret_command, higher.secret_command);
    put(&mut lower.model, higher.model);
    put(&mut lower.wait_for_answer, higher.wait_for_answer);
    for (name, provider) in higher.providers {
        match lower.providers.iter_mut().find(|(other, _)| *other == name) {
            Some((_, lower)) => *lower = provider,
            None => lower.providers.push((name, provider)),
        }
    }
    for (name, profile) in higher.profiles {
        match lower.profiles.iter_mut().find(|(other, _)| *other == name) {
            Some((_, lower)) => *lower = profile,
            None => lower.profiles.push((name, profile)),
        }
    }
}
