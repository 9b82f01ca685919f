//! The part of a server definition that an approval covers, in the form that is displayed and hashed.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use wharf_spec::{Environment, Fingerprint, HttpTransport, UntrustedText, find_program};

use super::entry_points::CommandLine;
use super::file_digests::FileDigestCache;
use super::{file_digests, warnings};
use crate::{
    EntrySite, HttpDefinition, OauthDefinition, ServerDefinition, SourcedValue, StartDirectory, StdioDefinition,
    TransportDefinition, env_file,
};

/// Note about the limits of an approval of a local server.
const NOT_COVERED: &str = "not covered by this approval: modules, packages and programs that these files load or start, \
                           including downloads. They may change without a new prompt";

/// A digest of everything that an approval covers.
pub type ApprovalDigest = Fingerprint;

/// Labels of login settings. The others are labelled with their keys.
const LOGIN_LABELS: [(&str, &str); 6] = [
    ("authorization_url", "login page"),
    ("token_url", "token address"),
    ("registration_url", "registration address"),
    ("client_id", "client id"),
    ("client_secret", "client secret"),
    ("scope", "scope"),
];

/// Everything in a server definition that affects the programs that run, the hosts that are contacted and the data that
/// they receive. Values are as written, and expanded only to find files. Location, key order and whitespace do not
/// matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalSubject {
    facts: Vec<ApprovalFact>,
    /// Canonical path of the program.
    program: Option<PathBuf>,
    warnings: Vec<String>,
    /// Set if a program is started: the server, or one that makes headers.
    starts: bool,
}

/// One fact about a server. Displayed on its own line and included in the digest.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ApprovalFact {
    what: &'static str,
    /// Distinguishes several facts with the same label.
    which: String,
    value: String,
}

impl ApprovalSubject {
    /// Inspects a server definition and the files that it names. Blocks.
    pub fn inspect(described: &ServerDefinition, around: &Environment) -> Self {
        Self::inspect_with_cache(described, around, &mut FileDigestCache::default())
    }

    /// Inspects one of several servers, which may share files. Blocks.
    pub(crate) fn inspect_with_cache(
        described: &ServerDefinition,
        around: &Environment,
        contents: &mut FileDigestCache,
    ) -> Self {
        let mut facts = FactCollector {
            all: Vec::new(),
            from_file: Vec::new(),
            program: None,
            expands: described.expands,
            site: &described.site,
            around,
            contents,
        };
        match &described.reach {
            TransportDefinition::Stdio(stdio) => facts.add_stdio(stdio),
            TransportDefinition::Http(http) => facts.add_http(http),
        }
        facts.add_if(!described.expands, "variables", "not expanded");
        facts.add_if(described.trust, "trust", "its tools are used without a question");
        facts.add_if(described.include_tools.as_ref().is_some_and(Vec::is_empty), "only tools", "none");
        facts.add_list("only tools", described.include_tools.iter().flatten());
        facts.add_list("without tools", &described.exclude_tools);
        let FactCollector { all: facts, from_file, program, .. } = facts;
        let from_file: Vec<String> = from_file.into_iter().map(|(name, _)| name).collect();
        let starts = match &described.reach {
            TransportDefinition::Stdio(_) => true,
            TransportDefinition::Http(http) => !http.headers_command.is_empty(),
        };
        Self { facts, program, warnings: warnings::collect_warnings(described, &from_file), starts }
    }

    /// Returns the SHA-256 hash of all facts, with each part preceded by its length.
    pub fn digest(&self) -> ApprovalDigest {
        let mut hash = Sha256::new();
        for ApprovalFact { what, which, value } in &self.facts {
            for part in [what, which.as_str(), value.as_str()] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
        }
        Fingerprint(hash.finalize().into())
    }

    /// Returns the text of the approval prompt, escaped and complete: one line per argument, variable and header, then
    /// the warnings, then the limits of the approval.
    pub fn lines(&self) -> Vec<String> {
        let facts = self.facts.iter().map(ApprovalFact::line);
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        facts.chain(warnings).chain(self.starts.then(|| NOT_COVERED.to_owned())).collect()
    }

    /// Returns the canonical path of the program. `None` if it is not found or the server is not a local one.
    pub fn program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    /// Returns the warnings, escaped.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl ApprovalFact {
    fn line(&self) -> String {
        let Self { what, which, value } = self;
        let space = if which.is_empty() { "" } else { " " };
        let quote = if value.is_empty() || value.trim() != value { "\"" } else { "" };
        format!("{what}{space}{}: {quote}{}{quote}", UntrustedText::new(which), UntrustedText::new(value))
    }
}

struct FactCollector<'a> {
    all: Vec<ApprovalFact>,
    /// Variables from the server's `envFile`.
    from_file: Vec<(String, String)>,
    program: Option<PathBuf>,
    expands: bool,
    site: &'a EntrySite,
    around: &'a Environment,
    contents: &'a mut FileDigestCache,
}

impl FactCollector<'_> {
    fn add_stdio(&mut self, stdio: &StdioDefinition) {
        self.add("transport", "stdio".to_owned());
        self.add("command", stdio.command.value.clone());
        self.add_list("argument", stdio.args.iter().map(|argument| &argument.value));
        self.add_directory(stdio.cwd.as_ref());
        self.add_named("variable", &stdio.env, str::to_owned);
        let mut handed: Vec<_> = stdio.env_vars.iter().map(|name| &name.value).collect();
        handed.sort_unstable();
        handed.into_iter().for_each(|name| self.add_qualified("your variable", name, "handed down".to_owned()));
        self.add_if(stdio.inherit_env, "environment", "the whole of yours");
        self.add_file("variables from", stdio.env_file.as_ref());
        self.add_variables_of(stdio.env_file.as_ref());
        self.add_program(stdio);
        self.add_entry_points(stdio);
    }

    /// Adds the working directory as written and its current canonical path.
    fn add_directory(&mut self, cwd: Option<&SourcedValue<String>>) {
        let Some(cwd) = cwd else { return };
        let found = self.resolve_path(&cwd.value).and_then(|path| path.canonicalize().ok());
        self.add("directory", cwd.value.clone());
        self.add_qualified(
            "directory",
            "(in truth)",
            found.map_or_else(|| "not found".to_owned(), |path| file_digests::path_to_text(&path)),
        );
    }

    /// Adds the variables of an env file. An unreadable file adds none, and the server is not started.
    fn add_variables_of(&mut self, file: Option<&SourcedValue<String>>) {
        let path = file.and_then(|file| self.resolve_path(&file.value));
        let found = path.and_then(|path| env_file::read(&path).ok()).unwrap_or_default();
        found.iter().for_each(|(name, value)| self.add_qualified("variable from file", name, value.clone()));
        self.from_file = found;
    }

    /// Returns the value that the entry or its env file sets for a variable. The entry takes precedence.
    fn variable(&self, stdio: &StdioDefinition, name: &str) -> Option<String> {
        let is_it = |known: &String| known == name;
        let own =
            stdio.env.iter().rfind(|(known, _)| is_it(known)).map(|(_, value)| self.expand_for_lookup(&value.value));
        own.or_else(|| self.from_file.iter().rfind(|(known, _)| is_it(known)).map(|(_, value)| value.clone()))
    }

    /// Returns the directory in which the server starts.
    fn start_directory(&self, stdio: &StdioDefinition) -> PathBuf {
        let named = stdio.cwd.as_ref().and_then(|cwd| self.resolve_path(&cwd.value));
        named.unwrap_or_else(|| self.site.start.path().to_owned())
    }

    /// Adds the program that the command currently resolves to, and its content.
    fn add_program(&mut self, stdio: &StdioDefinition) {
        let users = || self.around.var("PATH").map(|path| path.to_string_lossy().into_owned());
        let path = self.variable(stdio, "PATH").or_else(users).unwrap_or_default();
        let command = self.expand_for_lookup(&stdio.command.value);
        let base = self.site.base.clone().unwrap_or_default();
        let file = find_program(command.as_ref(), path.as_ref(), &base, self.around).ok();
        self.program = file.and_then(|file| file.canonicalize().ok());
        self.add("program", self.program.as_deref().map_or_else(|| "not found".to_owned(), file_digests::path_to_text));
        if let Some(program) = self.program.clone().filter(|program| self.covers_content_of(program)) {
            let content = self.contents.describe(&program);
            self.add("program file", content);
        }
    }

    /// Reports whether an approval covers a file's content. For a server of the user's own, only files inside the
    /// project are covered: such a server is approved for that directory, and all other files belong to the user.
    fn covers_content_of(&self, file: &Path) -> bool {
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match self.site.start {
            StartDirectory::Project(_) => true,
            StartDirectory::Private(_) => whole(file).starts_with(whole(&self.site.project)),
        }
    }

    /// Adds the other files that the command line runs, and their contents. A change of a file requires a new approval.
    fn add_entry_points(&mut self, stdio: &StdioDefinition) {
        let cwd = self.start_directory(stdio);
        let words = [&stdio.command].into_iter().chain(&stdio.args).map(|word| self.expand_for_lookup(&word.value));
        let words: Vec<String> = words.collect();
        let python_path = self.variable(stdio, "PYTHONPATH").unwrap_or_default();
        let python_path = std::env::split_paths(&python_path).collect();
        let line = CommandLine { words: &words, cwd: &cwd, python_path };
        for (file, label) in
            line.entry_points().into_iter().filter(|(file, _)| self.covers_content_of(file)).collect::<Vec<_>>()
        {
            let named = format!("{label}, {}", file_digests::path_to_text(&file));
            let content = self.contents.describe(&file);
            self.add_qualified("file", &named, content);
        }
    }

    fn add_http(&mut self, http: &HttpDefinition) {
        let transport = match http.form {
            HttpTransport::Automatic => "http or sse",
            HttpTransport::Streamable => "http",
            HttpTransport::Sse => "sse",
        };
        self.add("transport", transport.to_owned());
        self.add("address", http.url.value.clone());
        self.add_named("header", &http.headers, str::to_ascii_lowercase);
        if let Some(command) = http.headers_program() {
            self.add_list("headers command", http.headers_command.iter().map(|word| &word.value));
            self.add_program(&command);
            self.add_entry_points(&command);
        }
        self.add_optional("proxy", http.proxy.as_ref());
        http.ca.iter().for_each(|file| self.add_file("trusts certificates of", Some(file)));
        self.add_file("client certificate", http.client_cert.as_ref());
        self.add_if(!http.mirror_arguments, "arguments", "not repeated in headers");
        http.oauth.iter().for_each(|oauth| self.add_oauth(oauth));
    }

    fn add_oauth(&mut self, oauth: &OauthDefinition) {
        self.add("login", "OAuth".to_owned());
        for (name, text) in &oauth.texts {
            match LOGIN_LABELS.iter().find(|(key, _)| key == name) {
                Some((_, what)) => self.add(what, text.value.clone()),
                None => self.add_qualified("login", name, text.value.clone()),
            }
        }
        oauth.callback_port.iter().for_each(|port| self.add_qualified("login", "callback_port", port.to_string()));
    }

    fn add(&mut self, what: &'static str, value: String) {
        self.add_qualified(what, "", value);
    }

    /// Adds a fact if the condition holds.
    fn add_if(&mut self, is_so: bool, what: &'static str, value: &str) {
        if is_so {
            self.add(what, value.to_owned());
        }
    }

    fn add_qualified(&mut self, what: &'static str, which: &str, value: String) {
        self.all.push(ApprovalFact { what, which: which.to_owned(), value });
    }

    fn add_optional(&mut self, what: &'static str, value: Option<&SourcedValue<String>>) {
        value.into_iter().for_each(|sited| self.add(what, sited.value.clone()));
    }

    fn add_list<'v>(&mut self, what: &'static str, values: impl IntoIterator<Item = &'v String>) {
        for (n, value) in values.into_iter().enumerate() {
            self.add_qualified(what, &(n + 1).to_string(), value.clone());
        }
    }

    fn add_named(
        &mut self,
        what: &'static str,
        values: &[(String, SourcedValue<String>)],
        spelling: fn(&str) -> String,
    ) {
        let mut values: Vec<_> = values.iter().map(|(name, value)| (spelling(name), &value.value)).collect();
        values.sort_unstable();
        values.into_iter().for_each(|(name, value)| self.add_qualified(what, &name, value.clone()));
    }

    /// Adds a file by its path and its content.
    fn add_file(&mut self, what: &'static str, file: Option<&SourcedValue<String>>) {
        let Some(file) = file else { return };
        let path = self.resolve_path(&file.value);
        let content = path.map_or_else(|| "cannot be read".to_owned(), |path| self.contents.describe(&path));
        self.add(what, file.value.clone());
        self.add_qualified(what, "(content)", content);
    }

    fn resolve_path(&self, written: &str) -> Option<PathBuf> {
        self.site.resolve(&self.expand_for_lookup(written))
    }

    fn expand_for_lookup(&self, text: &str) -> String {
        if self.expands {
            file_digests::expand_for_lookup(text, &self.site.project, self.around)
        } else {
            text.to_owned()
        }
    }
}
