//! What is configured, as commands need it: where it is looked for, and entries that a host can keep.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use clap::Args;
use tokio::sync::oneshot;
use wharf_config::{
    Approval, Config, Configured, Places, Problem, Reader, Referred, Resolving, RuleText, SecretStore, Settings,
    Severity,
};
use wharf_policy::{Action, Policy, Rule, RuleOrigin, SourcedRule, Standing};
use wharf_spec::{Admission, ServerEntry, ServerSpec, Surroundings};

use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::nearest::suggestion;
use crate::servers::shown_word;

/// Which configuration counts.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// Read this file above all others: JSON with comments, YAML or TOML; may be repeated
    #[arg(
        long = "config",
        visible_alias = "mcp-config",
        global = true,
        value_name = "FILE",
        help_heading = "Configuration"
    )]
    files: Vec<PathBuf>,
    /// Read no other file for servers than those of --config
    #[arg(long, global = true, help_heading = "Configuration")]
    only_config: bool,
    /// Fail where anything in the configuration is wrong
    #[arg(long, global = true, help_heading = "Configuration")]
    strict_config: bool,
}

impl ConfigArgs {
    /// This file and no other.
    pub fn only(file: impl Into<PathBuf>) -> Self {
        Self { files: vec![file.into()], only_config: true, ..Self::default() }
    }
}

/// What is configured. Nothing is read before somebody asks.
pub struct Configuration {
    pub places: Places,
    /// Where a program keeps what it knows; nowhere without a home.
    pub state: Option<PathBuf>,
    pub around: Surroundings,
    /// What `--account` says, which goes before what entries say.
    pub account: Option<String>,
    /// Whoever looks at the files again does so with this, so that all know what a file said before it broke.
    pub reader: Reader,
    console: Arc<Console>,
    strict: bool,
    loaded: OnceLock<Arc<Config>>,
}

impl Configuration {
    pub fn new(args: ConfigArgs, around: &Surroundings, console: Arc<Console>) -> Self {
        let (places, state) = whereabouts(&args, around);
        let (reader, strict) = (Reader::new(places.clone(), around.clone()), args.strict_config);
        Self { places, state, around: around.clone(), account: None, reader, console, strict, loaded: OnceLock::new() }
    }

    /// Everything that is configured; read once. The first time, what is wrong with files is told as warnings; what is
    /// wrong with a server is told by whoever wants to use it.
    pub fn config(&self) -> Result<&Arc<Config>, Failure> {
        let mut is_new = false;
        let config = self.loaded.get_or_init(|| {
            is_new = true;
            Arc::new(self.reader.read())
        });
        if self.strict
            && let Some(first) = config.problems.first()
        {
            return Err(self.strictly(first, config.problems.len()));
        }
        // Somebody named it, so they want what it says.
        if let Some(missing) = config.problems.iter().find(|problem| problem.code == "missing_file") {
            return Err(broken(missing));
        }
        if is_new {
            let of_files = |problem: &&Problem| problem.server.is_none() || problem.severity == Severity::Warning;
            for problem in config.problems.iter().filter(of_files) {
                self.console.warn(told(problem));
            }
        }
        Ok(config)
    }

    /// What is wrong, as the end of a command that may not go on.
    fn strictly(&self, first: &Problem, count: usize) -> Failure {
        let failure = broken(first);
        match count {
            1 => failure,
            _ => failure.hint(format_args!("there are {} more problems: wharf validate", count - 1)),
        }
    }

    /// The server of this name, ready to be kept. Fails, saying what to do, where there is none, or it is switched off,
    /// broken or not approved.
    pub async fn entry(&self, name: &str) -> Result<ServerEntry, Failure> {
        self.entry_of(self.find(name)?).await
    }

    /// This server, ready to be kept.
    pub async fn entry_of(&self, server: &Configured) -> Result<ServerEntry, Failure> {
        let config = self.config()?;
        if let Some(failure) = refusal(server) {
            return Err(failure);
        }
        let (server, config) = (server.clone(), Arc::clone(config));
        self.resolve(vec![server], config).await.pop().unwrap_or_else(|| Err(Failure::other("it was lost on the way")))
    }

    /// The server of this name, whatever may be wrong with it.
    pub fn find(&self, name: &str) -> Result<&Configured, Failure> {
        let config = self.config()?;
        config.server(name).ok_or_else(|| {
            let failure = Failure::usage(format_args!("there is no server `{}`", shown_word(name)));
            match &config.servers[..] {
                [] => failure.hint(ADD),
                servers => failure.hint(suggestion(name, servers.iter().map(|server| server.name.as_str()))),
            }
        })
    }

    /// All servers that are switched on and approved, and why the others that were meant to be are not there.
    pub async fn entries(&self) -> Result<(Vec<ServerEntry>, Vec<Failure>), Failure> {
        let config = self.config()?;
        let wanted = config.servers.iter().filter(|server| server.admission() == Admission::Enabled).cloned().collect();
        let (mut entries, mut failures) = (Vec::new(), Vec::new());
        for resolved in self.resolve(wanted, Arc::clone(config)).await {
            match resolved {
                Ok(entry) => entries.push(entry),
                Err(failure) => failures.push(failure),
            }
        }
        Ok((entries, failures))
    }

    /// Expands servers, in their order. One that needs a secret has a thread of its own, since that may take as long as
    /// the program that knows it; nobody else waits for it there.
    pub async fn resolve(&self, servers: Vec<Configured>, config: Arc<Config>) -> Vec<Result<ServerEntry, Failure>> {
        let mut waiting = Vec::new();
        for server in servers {
            let needs_secret = refers_to_secret(&server);
            let (around, config, store) =
                (self.around.clone(), Arc::clone(&config), needs_secret.then(|| self.secrets(&config.settings)));
            let (account, places) = (self.account.clone(), self.places.clone());
            let work = move || {
                let entry = expanded(&server, &config, &places, &around, store.as_ref())?;
                Ok(with_login(entry, login_key(&server), account))
            };
            let (done, resolved) = oneshot::channel();
            if needs_secret {
                std::thread::spawn(move || {
                    // Nobody may be waiting any more.
                    let _ = done.send(work());
                });
            } else {
                let _ = done.send(work());
            }
            waiting.push(resolved);
        }
        let mut all = Vec::new();
        for resolved in waiting {
            all.push(resolved.await.unwrap_or_else(|_| Err(Failure::other("it was lost on the way"))));
        }
        all
    }

    /// The servers whose messages are to be shown because their entries say so. Nothing is read to find out.
    pub fn debugging(&self) -> Vec<String> {
        let Some(config) = self.loaded.get() else { return Vec::new() };
        let says_so = |server: &&Configured| {
            config.settings.debug || server.described.as_ref().is_ok_and(|described| described.debug)
        };
        config.servers.iter().filter(says_so).map(|server| server.name.to_string()).collect()
    }

    /// Where `${secret:NAME}` comes from.
    pub fn secrets(&self, settings: &Settings) -> SecretStore {
        let user = &self.places.user;
        // Without a home there is no such file: a bare file name would be one of the working directory.
        let file = if user.as_os_str().is_empty() { PathBuf::new() } else { user.with_file_name("secrets.json") };
        let store = SecretStore::new(file, self.around.clone());
        match &settings.secret_command {
            Some(command) => store.with_command(command.clone()),
            None => store,
        }
    }

    /// The rules that hold.
    pub fn rules(&self) -> Result<Vec<SourcedRule>, Failure> {
        Ok(rules_of(&self.config()?.settings))
    }

    /// Whether anything that is wrong is fatal.
    pub fn is_strict(&self) -> bool {
        self.strict
    }
}

/// The rules that hold by these settings.
pub fn rules_of(settings: &Settings) -> Vec<SourcedRule> {
    let mut rules = sourced(&settings.rules);
    if settings.unread {
        // What it forbids is not known, so nothing is called before it is mended.
        let place = "a file of yours that cannot be read: wharf validate".to_owned();
        rules.push(SourcedRule {
            rule: Rule::new("mcp__*", Action::Deny),
            origin: RuleOrigin { place, standing: Standing::User },
        });
    }
    rules
}

/// The rules of a project that cannot be read, and what is done instead, each in a line.
pub fn unreadable_rules(settings: &Settings) -> Vec<String> {
    let policy = Policy::compile(rules_of(settings), &[]);
    // One without any name was reported when its file was read.
    let is_named = |problem: &&wharf_policy::Problem| !problem.rule.rule.tool.is_empty();
    let unreadable = policy.problems().iter().filter(|problem| problem.is_unreadable() && !problem.is_fatal());
    let unreadable = unreadable.filter(is_named);
    let told = |problem: &wharf_policy::Problem| {
        format!("{problem}; it cannot be read, so that every call of the project's own servers is asked about")
    };
    unreadable.map(told).collect()
}

/// Whether an entry needs a secret that is kept elsewhere.
pub fn refers_to_secret(server: &Configured) -> bool {
    server.described.as_ref().is_ok_and(|described| {
        described.references().iter().any(|reference| matches!(reference.to, Referred::Secret(_)))
    })
}

fn expanded(
    server: &Configured,
    config: &Config,
    places: &Places,
    around: &Surroundings,
    store: Option<&SecretStore>,
) -> Result<ServerEntry, Failure> {
    let secrets = |name: &str| match store.map(|store| store.lookup(name)) {
        Some(Ok(found)) => Ok(found.value.reveal().to_owned()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("nobody was asked".to_owned()),
    };
    let with = Resolving { around, settings: &config.settings, secrets: &secrets, places };
    server.resolve(&with).map_err(|problems| problems_of(server.name.as_str(), &problems))
}

/// What begins the key of a project's server, which goes by its name in that project.
const PROJECT: &str = "project:";

/// What a server's logins are kept under, where that is not its name: one that somebody else brings along has logins of
/// its own, whatever it calls itself.
pub fn login_key(server: &Configured) -> Option<String> {
    let key = || format!("{PROJECT}{}", filed_key(&server.place.file, server.name.as_str()));
    server.layer.needs_approval().then(key)
}

/// The file and the name of a project's server, where that is what logins are kept under.
pub fn of_project(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix(PROJECT)?.rsplit_once(':')
}

/// What logins of an entry of some file are kept under: `FILE:NAME`, as it may be typed anywhere.
pub fn filed_key(file: &Path, name: &str) -> String {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    format!("{}:{name}", file.display())
}

/// An entry that says under what its logins are kept, and which of them is used.
pub fn with_login(mut entry: ServerEntry, key: Option<String>, account: Option<String>) -> ServerEntry {
    if let ServerSpec::Http(spec) = &mut entry.spec {
        spec.login_key = key.or(spec.login_key.take());
        spec.account = account.or(spec.account.take());
    }
    entry
}

/// Rules as they are decided by.
pub fn sourced(rules: &[RuleText]) -> Vec<SourcedRule> {
    let rule = |text: &RuleText| SourcedRule {
        rule: Rule {
            tool: text.tool.clone(),
            pattern: text.pattern.clone(),
            action: action(&text.action),
            defined_in: text.defined_in.clone(),
        },
        origin: RuleOrigin {
            place: text.place.to_string(),
            standing: if text.from_project { Standing::Project } else { Standing::User },
        },
    };
    rules.iter().map(rule).collect()
}

/// What to do where nothing is configured.
pub const ADD: &str = "add one: wharf add NAME -- COMMAND ARGS…, or wharf add NAME URL; or wharf import";

/// Where configuration is looked for, and where a program keeps what it knows.
pub fn whereabouts(args: &ConfigArgs, around: &Surroundings) -> (Places, Option<PathBuf>) {
    let state = directory(around, "XDG_STATE_HOME", ".local/state");
    (places(args, around, state.as_deref()), state)
}

fn directory(around: &Surroundings, variable: &str, under: &str) -> Option<PathBuf> {
    let named = around.var(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| home(around).map(|home| home.join(under))).map(|path| path.join("wharf"))
}

/// The home directory. A relative one is ignored: it would be looked for in the working directory, and then files of a
/// project would pass for the user's own.
pub fn home(around: &Surroundings) -> Option<PathBuf> {
    around.var("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Variables that name a directory of the user's by a relative path, and are ignored therefore.
pub fn ignored_variables(around: &Surroundings) -> impl Iterator<Item = (&'static str, PathBuf)> {
    ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"].into_iter().filter_map(|name| {
        let path = around.var(name).map(PathBuf::from)?;
        (path.is_relative() && !path.as_os_str().is_empty()).then_some((name, path))
    })
}

fn places(args: &ConfigArgs, around: &Surroundings, state: Option<&Path>) -> Places {
    let named = around.var("WHARF_CONFIG").filter(|path| !path.is_empty()).map(|path| around.cwd.join(path));
    let usual = || directory(around, "XDG_CONFIG_HOME", ".config").map(|path| path.join("config.json"));
    Places {
        home: home(around).map(|home| home.join(".mcp.json")),
        user_was_named: named.is_some(),
        user: named.or_else(usual).unwrap_or_default(),
        project: around.cwd.clone(),
        flags: args.files.iter().map(|file| around.cwd.join(file)).collect(),
        only_flags: args.only_config,
        variable: around
            .var("WHARF_MCP_SERVERS")
            .map(|text| text.to_string_lossy().into_owned())
            .filter(|text| !text.trim().is_empty()),
        approvals: state.map(|state| state.join("approvals.json")).unwrap_or_default(),
        server_dirs: state.map(|state| state.join("servers")).unwrap_or_default(),
    }
}

/// An action that was checked when it was read.
fn action(word: &str) -> Action {
    match word {
        "allow" => Action::Allow,
        "ask" => Action::Ask,
        _ => Action::Deny,
    }
}

/// Why a server may not be used, if it may not.
pub fn refusal(server: &Configured) -> Option<Failure> {
    let name = &server.name;
    if let Err(problems) = &server.described {
        return Some(problems_of(name.as_str(), problems));
    }
    let failure = match (server.admission(), server.approval) {
        (Admission::Enabled, _) => return None,
        (Admission::Disabled, _) => Failure::usage("it is switched off").hint(format_args!("wharf enable {name}")),
        (Admission::Unapproved, Approval::Changed) => {
            Failure::of(Kind::Denied, "it has changed since you approved it").hint(format_args!("wharf approve {name}"))
        }
        (Admission::Unapproved, _) => Failure::of(Kind::Denied, unapproved(server))
            .hint(format_args!("wharf approve {name} shows what it would run and asks you")),
    };
    Some(failure.about(name.as_str()).hint(format_args!("it stands in {}", server.place)))
}

/// Why a server waits for an approval that was never given.
pub fn unapproved(server: &Configured) -> &'static str {
    match server.layer.needs_approval() {
        true => "the project brings it along, and you have not approved it",
        false => "it gets the project's directory (`${project}`), and you have not approved that for this one",
    }
}

/// One problem as a line: where, what, what to do.
pub fn told(problem: &Problem) -> String {
    match &problem.fix {
        Some(fix) => format!("{problem}; {fix}"),
        None => problem.to_string(),
    }
}

/// A problem as the end of a command.
pub fn broken(problem: &Problem) -> Failure {
    let failure = Failure::usage(problem);
    let failure = problem.fix.iter().fold(failure, |failure, fix| failure.hint(fix));
    problem.server.iter().fold(failure, |failure, server| failure.about(server))
}

/// What is wrong with a server, as the end of a command.
pub fn problems_of(server: &str, problems: &[Problem]) -> Failure {
    match problems.split_first() {
        None => Failure::usage("it cannot be read").about(server),
        Some((first, others)) => others.iter().fold(broken(first), |failure, other| failure.hint(told(other))),
    }
}
