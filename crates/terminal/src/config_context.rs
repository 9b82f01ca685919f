//! The configuration as commands use it: its location, and entries resolved for a host.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use clap::{ArgMatches, Args};
use tokio::sync::oneshot;
use wharf_config::{
    Config, ConfigPaths, ConfigProblem, ConfigReader, ConfiguredServer, GlobalSettings, ProblemSeverity,
    ReferenceTarget, ResolveContext, SecretStore, ServerApproval,
};
use wharf_policy::{Policy, Rule, RuleAction, RuleAuthority, RuleOrigin, SourcedRule};
use wharf_spec::{ActivationState, Environment, ServerEntry, ServerSpec};

use crate::console::Console;
use crate::failure::{Failure, FailureKind};
use crate::project_directory::find_project_directory;
use crate::servers::printable_word;
use crate::suggestions::suggestion;

/// Options that select the configuration.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// Read this file above all others: JSON with comments, YAML or TOML; repeatable
    #[arg(long = "config", visible_alias = "mcp-config", value_name = "FILE", help_heading = "Configuration")]
    files: Vec<PathBuf>,
    /// Read servers only from the files of --config
    #[arg(long, help_heading = "Configuration")]
    only_config: bool,
    /// Fail on any problem in the configuration
    #[arg(long, help_heading = "Configuration")]
    strict_config: bool,
}

impl ConfigArgs {
    /// Adds the options given after the name of a command, as far as the command has them.
    pub fn add_matches(&mut self, matches: &ArgMatches) {
        if let Ok(Some(files)) = matches.try_get_many::<PathBuf>("files") {
            self.files.extend(files.cloned());
        }
        let is_set = |id| matches.try_get_one::<bool>(id).ok().flatten().is_some_and(|is_set| *is_set);
        self.only_config |= is_set("only_config");
        self.strict_config |= is_set("strict_config");
    }

    /// Returns options that select only this file.
    pub fn only(file: impl Into<PathBuf>) -> Self {
        Self { files: vec![file.into()], only_config: true, ..Self::default() }
    }
}

/// The configuration, loaded on first use.
pub struct ConfigContext {
    pub places: ConfigPaths,
    /// State directory. `None` without a home directory.
    pub state: Option<PathBuf>,
    pub environment: Environment,
    /// Value of `--account`, which overrides the entries.
    pub account: Option<String>,
    /// Shared reader of the files. It remembers the last valid content of each.
    pub reader: ConfigReader,
    console: Arc<Console>,
    strict: bool,
    loaded: OnceLock<Arc<Config>>,
}

impl ConfigContext {
    pub fn new(args: ConfigArgs, environment: &Environment, console: Arc<Console>) -> Self {
        let (places, state) = config_paths(&args, environment);
        let (reader, strict) = (ConfigReader::new(places.clone(), environment.clone()), args.strict_config);
        Self {
            places,
            state,
            environment: environment.clone(),
            account: None,
            reader,
            console,
            strict,
            loaded: OnceLock::new(),
        }
    }

    /// Returns the configuration, loaded once. The first call prints warnings about problems of files. Errors of a
    /// server are reported when the server is used.
    ///
    /// # Errors
    ///
    /// Fails if a named file is missing, or in strict mode if there is any problem.
    pub fn config(&self) -> Result<&Arc<Config>, Failure> {
        let mut is_new = false;
        let config = self.loaded.get_or_init(|| {
            is_new = true;
            Arc::new(self.reader.read())
        });
        if self.strict
            && let Some(first) = config.problems.first()
        {
            return Err(self.strict_failure(first, config.problems.len()));
        }
        // A file that was named explicitly must exist.
        if let Some(missing) = config.problems.iter().find(|problem| problem.code == "missing_file") {
            return Err(problem_failure(missing));
        }
        if is_new {
            let of_files =
                |problem: &&ConfigProblem| problem.server.is_none() || problem.severity == ProblemSeverity::Warning;
            for problem in config.problems.iter().filter(of_files) {
                self.console.warn(problem_line(problem));
            }
        }
        Ok(config)
    }

    /// Returns the failure of strict mode.
    fn strict_failure(&self, first: &ConfigProblem, count: usize) -> Failure {
        let failure = problem_failure(first);
        match count {
            1 => failure,
            _ => failure.with_hint(format_args!("{} more problems: wharf validate", count - 1)),
        }
    }

    /// Resolves the server of this name.
    ///
    /// # Errors
    ///
    /// Fails if it does not exist, is disabled, invalid or not approved, or cannot be resolved.
    pub async fn entry(&self, name: &str) -> Result<ServerEntry, Failure> {
        self.entry_of(self.find(name)?).await
    }

    /// Resolves this server.
    ///
    /// # Errors
    ///
    /// Fails if it is disabled, invalid or not approved, or cannot be resolved.
    pub async fn entry_of(&self, server: &ConfiguredServer) -> Result<ServerEntry, Failure> {
        let config = self.config()?;
        if let Some(failure) = usage_refusal(server) {
            return Err(failure);
        }
        let (server, config) = (server.clone(), Arc::clone(config));
        self.resolve(vec![server], config)
            .await
            .pop()
            .unwrap_or_else(|| Err(Failure::other("internal error: the resolver task was cancelled")))
    }

    /// Finds the server of this name, even if it is not usable.
    ///
    /// # Errors
    ///
    /// Fails if there is no such server.
    pub fn find(&self, name: &str) -> Result<&ConfiguredServer, Failure> {
        let config = self.config()?;
        config.server(name).ok_or_else(|| {
            let failure = Failure::usage(format_args!("no server named `{}`", printable_word(name)));
            match &config.servers[..] {
                [] => failure.with_hint(ADD),
                servers => failure.with_hint(suggestion(name, servers.iter().map(|server| server.name.as_str()))),
            }
        })
    }

    /// Resolves all enabled and approved servers. Returns the entries and the failures.
    ///
    /// # Errors
    ///
    /// Fails if the configuration cannot be read.
    pub async fn entries(&self) -> Result<(Vec<ServerEntry>, Vec<Failure>), Failure> {
        let config = self.config()?;
        let wanted =
            config.servers.iter().filter(|server| server.activation() == ActivationState::Enabled).cloned().collect();
        let (mut entries, mut failures) = (Vec::new(), Vec::new());
        for resolved in self.resolve(wanted, Arc::clone(config)).await {
            match resolved {
                Ok(entry) => entries.push(entry),
                Err(failure) => failures.push(failure),
            }
        }
        Ok((entries, failures))
    }

    /// Resolves servers, in their order. A server with a secret is resolved on its own thread, because the secret
    /// command may take long and must not delay the others.
    pub async fn resolve(
        &self,
        servers: Vec<ConfiguredServer>,
        config: Arc<Config>,
    ) -> Vec<Result<ServerEntry, Failure>> {
        let mut waiting = Vec::new();
        for server in servers {
            let needs_secret = refers_to_secret(&server);
            let (environment, config, store) = (
                self.environment.clone(),
                Arc::clone(&config),
                needs_secret.then(|| self.secret_store(&config.settings)),
            );
            let (account, places) = (self.account.clone(), self.places.clone());
            let work = move || {
                let entry = resolve_entry(&server, &config, &places, &environment, store.as_ref())?;
                Ok(with_login(entry, login_key(&server), account))
            };
            let (done, resolved) = oneshot::channel();
            // The receiver may have been dropped.
            let resolve = move || drop(done.send(work()));
            let started = if needs_secret {
                wharf_threads::start_thread("wharf-secret", resolve)
            } else {
                resolve();
                Ok(())
            };
            waiting.push(started.map(|()| resolved));
        }
        let mut all = Vec::new();
        for resolved in waiting {
            all.push(match resolved {
                Ok(resolved) => resolved
                    .await
                    .unwrap_or_else(|_| Err(Failure::other("internal error: the resolver task was cancelled"))),
                Err(error) => Err(Failure::other(error)),
            });
        }
        all
    }

    /// Returns the servers with `debug` in their entries or the settings. Does not load the configuration.
    pub fn debugged_servers(&self) -> Vec<String> {
        let Some(config) = self.loaded.get() else { return Vec::new() };
        let says_so = |server: &&ConfiguredServer| {
            config.settings.debug || server.described.as_ref().is_ok_and(|described| described.debug)
        };
        config.servers.iter().filter(says_so).map(|server| server.name.to_string()).collect()
    }

    /// Returns the store behind `${secret:NAME}`.
    pub fn secret_store(&self, settings: &GlobalSettings) -> SecretStore {
        let user = &self.places.user;
        // Without a home directory there is no such file: a bare file name would refer to the working directory.
        let file = if user.as_os_str().is_empty() { PathBuf::new() } else { user.with_file_name("secrets.json") };
        let store = SecretStore::new(file, self.environment.clone());
        match &settings.secret_command {
            Some(command) => store.with_command(command.clone()),
            None => store,
        }
    }

    /// Returns the permission rules in effect.
    ///
    /// # Errors
    ///
    /// Fails if the configuration cannot be read.
    pub fn rules(&self) -> Result<Vec<SourcedRule>, Failure> {
        Ok(rules_of(&self.config()?.settings))
    }

    /// Reports whether any problem is an error (`--strict-config`).
    pub fn is_strict(&self) -> bool {
        self.strict
    }
}

/// Returns the permission rules of these settings.
pub fn rules_of(settings: &GlobalSettings) -> Vec<SourcedRule> {
    let mut rules = wharf::rules_from_config(&settings.rules);
    if settings.unread {
        // The rules of the unreadable file are unknown, so deny every call until it is fixed.
        let place = "an unreadable file of yours (see wharf validate)".to_owned();
        rules.push(SourcedRule {
            rule: Rule::new("mcp__*", RuleAction::Deny),
            origin: RuleOrigin { place, authority: RuleAuthority::User },
        });
    }
    rules
}

/// Returns a warning for each project rule that cannot be parsed, with its consequence.
pub fn unreadable_rules(settings: &GlobalSettings) -> Vec<String> {
    let policy = Policy::compile(rules_of(settings), &[]);
    // A rule without a tool name was reported when its file was loaded.
    let is_named = |problem: &&wharf_policy::RuleProblem| !problem.rule.rule.tool.is_empty();
    let unreadable = policy.problems().iter().filter(|problem| problem.is_unreadable() && !problem.is_fatal());
    let unreadable = unreadable.filter(is_named);
    let describe = |problem: &wharf_policy::RuleProblem| {
        format!("{problem}; the rule is invalid, so every call to the project's own servers needs confirmation")
    };
    unreadable.map(describe).collect()
}

/// Reports whether an entry refers to a stored secret.
pub fn refers_to_secret(server: &ConfiguredServer) -> bool {
    server.described.as_ref().is_ok_and(|described| {
        described.references().iter().any(|reference| matches!(reference.to, ReferenceTarget::Secret(_)))
    })
}

fn resolve_entry(
    server: &ConfiguredServer,
    config: &Config,
    places: &ConfigPaths,
    environment: &Environment,
    store: Option<&SecretStore>,
) -> Result<ServerEntry, Failure> {
    let secrets = |name: &str| match store.map(|store| store.lookup(name)) {
        Some(Ok(found)) => Ok(found.value.reveal().to_owned()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("no secret store is available".to_owned()),
    };
    let with = ResolveContext { around: environment, settings: &config.settings, secrets: &secrets, places };
    server.resolve(&with).map_err(|problems| server_problems_failure(server.name.as_str(), &problems))
}

/// Prefix of the login key of a project's server.
const PROJECT_KEY_PREFIX: &str = "project:";

/// Returns the login key of a server, if it is not its name. A project's server has its own logins, separate from those
/// of a user's server with the same name.
pub fn login_key(server: &ConfiguredServer) -> Option<String> {
    let key = || format!("{PROJECT_KEY_PREFIX}{}", file_entry_key(&server.place.file, server.name.as_str()));
    server.layer.needs_approval().then(key)
}

/// Splits the login key of a project's server into file and name.
pub fn split_project_key(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix(PROJECT_KEY_PREFIX)?.rsplit_once(':')
}

/// Returns the login key of an entry of a file: `FILE:NAME`, with a canonical path.
pub fn file_entry_key(file: &Path, name: &str) -> String {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    format!("{}:{name}", file.display())
}

/// Sets the login key and the account of an entry.
pub fn with_login(mut entry: ServerEntry, key: Option<String>, account: Option<String>) -> ServerEntry {
    if let ServerSpec::Http(spec) = &mut entry.spec {
        spec.login_key = key.or(spec.login_key.take());
        spec.account = account.or(spec.account.take());
    }
    entry
}

/// Hint if no server is configured.
pub const ADD: &str = "add one: wharf add NAME -- COMMAND ARGS…, or wharf add NAME URL; or wharf import";

/// Returns the configuration paths and the state directory.
pub fn config_paths(args: &ConfigArgs, environment: &Environment) -> (ConfigPaths, Option<PathBuf>) {
    let state = wharf_directory(environment, "XDG_STATE_HOME", ".local/state");
    (config_places(args, environment, state.as_deref()), state)
}

fn wharf_directory(environment: &Environment, variable: &str, under: &str) -> Option<PathBuf> {
    let named = environment.var(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| home_directory(environment).map(|home| home.join(under))).map(|path| path.join("wharf"))
}

/// Returns the home directory. Ignores a relative one, which would make files of the project pass for the user's own.
pub fn home_directory(environment: &Environment) -> Option<PathBuf> {
    environment.var("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Returns the variables that are ignored because they name a directory by a relative path.
pub fn ignored_variables(environment: &Environment) -> impl Iterator<Item = (&'static str, PathBuf)> {
    ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"].into_iter().filter_map(|name| {
        let path = environment.var(name).map(PathBuf::from)?;
        (path.is_relative() && !path.as_os_str().is_empty()).then_some((name, path))
    })
}

fn config_places(args: &ConfigArgs, environment: &Environment, state: Option<&Path>) -> ConfigPaths {
    let named = environment.var("WHARF_CONFIG").filter(|path| !path.is_empty()).map(|path| environment.cwd.join(path));
    let usual = || wharf_directory(environment, "XDG_CONFIG_HOME", ".config").map(|path| path.join("config.json"));
    ConfigPaths {
        home: home_directory(environment).map(|home| home.join(".mcp.json")),
        user_was_named: named.is_some(),
        user: named.or_else(usual).unwrap_or_default(),
        project: find_project_directory(&environment.cwd, home_directory(environment).as_deref()),
        flags: args.files.iter().map(|file| environment.cwd.join(file)).collect(),
        only_flags: args.only_config,
        variable: environment
            .var("WHARF_MCP_SERVERS")
            .map(|text| text.to_string_lossy().into_owned())
            .filter(|text| !text.trim().is_empty()),
        approvals: state.map(|state| state.join("approvals.json")).unwrap_or_default(),
        server_dirs: state.map(|state| state.join("servers")).unwrap_or_default(),
    }
}

/// Returns the reason that a server may not be used, if there is one.
pub fn usage_refusal(server: &ConfiguredServer) -> Option<Failure> {
    let name = &server.name;
    if let Err(problems) = &server.described {
        return Some(server_problems_failure(name.as_str(), problems));
    }
    let failure = match (server.activation(), server.approval) {
        (ActivationState::Enabled, _) => return None,
        (ActivationState::Disabled, _) => Failure::usage("disabled").with_hint(format_args!("wharf enable {name}")),
        (ActivationState::Unapproved, ServerApproval::Changed) => {
            Failure::new(FailureKind::Denied, "changed since you approved it")
                .with_hint(format_args!("wharf approve {name}"))
        }
        (ActivationState::Unapproved, _) => Failure::new(FailureKind::Denied, approval_reason(server))
            .with_hint(format_args!("wharf approve {name} shows what would run and asks for approval")),
    };
    Some(failure.about_server(name.as_str()).with_hint(format_args!("defined in {}", server.place)))
}

/// Returns the reason that a server needs approval.
pub fn approval_reason(server: &ConfiguredServer) -> &'static str {
    match server.layer.needs_approval() {
        true => "defined by the project and not approved yet",
        false => "refers to the project directory (`${project}`) and is not approved for this project yet",
    }
}

/// Formats a problem on one line: location, text and fix.
pub fn problem_line(problem: &ConfigProblem) -> String {
    match &problem.fix {
        Some(fix) => format!("{problem}; {fix}"),
        None => problem.to_string(),
    }
}

/// Converts a problem to a failure.
pub fn problem_failure(problem: &ConfigProblem) -> Failure {
    let failure = Failure::usage(problem);
    let failure = problem.fix.iter().fold(failure, |failure, fix| failure.with_hint(fix));
    problem.server.iter().fold(failure, |failure, server| failure.about_server(server))
}

/// Converts the problems of a server to a failure.
pub fn server_problems_failure(server: &str, problems: &[ConfigProblem]) -> Failure {
    match problems.split_first() {
        None => Failure::usage("the entry is invalid").about_server(server),
        Some((first, others)) => {
            others.iter().fold(problem_failure(first), |failure, other| failure.with_hint(problem_line(other)))
        }
    }
}
