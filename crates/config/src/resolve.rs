//! Expansion of a server definition into an entry that a host can run.

mod headers;
mod login;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use url::Url;
use wharf_spec::{
    ActivationState, EnvValue, Environment, HttpSpec, LaunchCheck, ReconnectPolicy, Secret, ServerEntry, ServerName,
    ServerOrigin, ServerSettings, ServerSpec, StdioSpec,
};

use crate::expand::{ExpandedText, ReferenceSources, SecretSource, TemplatePart, expand, parse_template};
use crate::server_definition::{
    ConfiguredServer, HttpDefinition, ServerApproval, ServerDefinition, SourcedValue, StdioDefinition,
    TransportDefinition,
};
use crate::settings::GlobalSettings;
use crate::{
    ApprovalDigest, ApprovalKey, ApprovalStore, ConfigPaths, ConfigProblem, EntrySite, ProblemSeverity, SourceLocation,
    env_file,
};

/// Context for the expansion of references.
pub struct ResolveContext<'a> {
    /// Environment variables and working directory.
    pub around: &'a Environment,
    /// Settings for all servers.
    pub settings: &'a GlobalSettings,
    /// Source of secrets.
    pub secrets: &'a SecretSource<'a>,
    /// Locations of configuration and approvals.
    pub places: &'a ConfigPaths,
}

impl ConfiguredServer {
    /// Expands the server into an entry that a host can run.
    ///
    /// Looks up secrets and may run `secretCommand`, so it may block.
    ///
    /// # Errors
    /// Returns the problems of an invalid definition, or the problem of a missing variable or secret.
    pub fn resolve(&self, with: &ResolveContext<'_>) -> Result<ServerEntry, Vec<ConfigProblem>> {
        let described = self.described.as_ref().map_err(Clone::clone)?;
        let mut entry = described.resolve(&self.name, with).map_err(|problem| vec![problem])?;
        entry.settings.admission = self.activation();
        entry.settings.origin = self.origin();
        if let ServerApproval::Approved(digest) = self.approval {
            let check = self.launch_check(described, digest, with);
            match &mut entry.spec {
                ServerSpec::Stdio(spec) => spec.launch_check = Some(check),
                ServerSpec::Http(spec) => spec.launch_check = Some(check),
            }
        }
        Ok(entry)
    }

    /// Creates the check that runs before every start. It inspects the server again and reads the approvals file again.
    fn launch_check(
        &self,
        described: &ServerDefinition,
        digest: ApprovalDigest,
        with: &ResolveContext<'_>,
    ) -> LaunchCheck {
        let ConfigPaths { project, approvals, .. } = with.places;
        let key = ApprovalKey::new(project, &self.place.file, self.name.as_str());
        let (approvals, described, around) = (ApprovalStore::new(approvals), described.clone(), with.around.clone());
        LaunchCheck::new(digest, move |program| approvals.check_launch(&key, &described, &around, program))
    }

    /// Returns the origin of the definition. Permissions for the user's own server do not apply to a project's.
    /// Accesses the file system.
    pub fn origin(&self) -> ServerOrigin {
        if self.layer.needs_approval() { file_origin(&self.place.file) } else { ServerOrigin::User }
    }

    /// Returns the activation state.
    pub fn activation(&self) -> ActivationState {
        match self.approval {
            ServerApproval::Needed | ServerApproval::Changed => ActivationState::Unapproved,
            _ if !self.enabled => ActivationState::Disabled,
            ServerApproval::NotNeeded | ServerApproval::Approved(_) => ActivationState::Enabled,
        }
    }
}

/// Returns the origin of servers defined in a file that is not the user's own.
pub fn file_origin(file: &Path) -> ServerOrigin {
    ServerOrigin::File(file.canonicalize().unwrap_or_else(|_| file.to_owned()).into())
}

impl ServerDefinition {
    /// Expands the definition, regardless of approval.
    pub fn resolve(&self, name: &ServerName, with: &ResolveContext<'_>) -> Result<ServerEntry, ConfigProblem> {
        let filling = EntryResolver { name, site: &self.site, expands: self.expands, with };
        let spec = match &self.reach {
            TransportDefinition::Stdio(stdio) => ServerSpec::Stdio(filling.stdio(stdio)?),
            TransportDefinition::Http(http) => ServerSpec::Http(filling.http(http)?),
        };
        Ok(ServerEntry { name: name.clone(), spec, settings: self.build_settings(with.settings) })
    }

    fn build_settings(&self, usual: &GlobalSettings) -> ServerSettings {
        let mut settings = ServerSettings::default();
        settings.lazy = self.lazy;
        settings.trust = self.trust;
        settings.include_tools.clone_from(&self.include_tools);
        settings.exclude_tools.clone_from(&self.exclude_tools);
        settings.timeout = self.timeout.or(usual.timeout);
        settings.tool_timeouts.clone_from(&self.tool_timeouts);
        settings.startup_timeout = self.startup_timeout;
        settings.max_message = self.max_message;
        settings.max_concurrent = self.max_concurrent;
        settings.reconnect = match (self.reconnect, usual.reconnect) {
            (Some(Err(false)), _) => ReconnectPolicy::Off,
            (Some(Ok(backoff)), _) | (_, Some(backoff)) => ReconnectPolicy::Backoff(backoff),
            _ => settings.reconnect,
        };
        settings.health_check = self.health_check.or(usual.health_check);
        settings.idle_stop = self.idle_stop.or(settings.idle_stop);
        settings.keep_results = self.keep_results.or(usual.keep_results);
        settings.instances = self.instances;
        settings
    }
}

/// Variables by name, in order of insertion.
type ServerVariables = Vec<(OsString, EnvValue)>;

struct EntryResolver<'a> {
    name: &'a ServerName,
    site: &'a EntrySite,
    expands: bool,
    with: &'a ResolveContext<'a>,
}

impl EntryResolver<'_> {
    fn expand_template(&self, template: &SourcedValue<String>) -> Result<ExpandedText, ConfigProblem> {
        if !self.expands {
            return Ok(ExpandedText { text: template.value.clone(), taken: Vec::new() });
        }
        let ResolveContext { around, secrets, .. } = *self.with;
        expand(&template.value, &ReferenceSources { around, secrets, project: Some(&self.site.project) })
            .map_err(|error| self.problem(error.code(), &template.place, error.to_string(), Some(error.fix())))
    }

    fn text(&self, template: &SourcedValue<String>) -> Result<String, ConfigProblem> {
        self.expand_template(template).map(|expanded| expanded.text)
    }

    fn path(&self, template: &SourcedValue<String>) -> Result<PathBuf, ConfigProblem> {
        let text = self.text(template)?;
        self.site.resolve(&text).ok_or_else(|| {
            let text = format!(
                "the relative path `{}` has no base directory, because its entry is not in a file",
                template.value
            );
            self.problem("relative_path", &template.place, text, Some("use an absolute path".to_owned()))
        })
    }

    /// Expands the command. A path is resolved like any other path of the entry. A name is looked up when the server
    /// starts.
    fn program(&self, template: &SourcedValue<String>) -> Result<OsString, ConfigProblem> {
        let text = self.text(template)?;
        if text.contains('/') { self.path(template).map(OsString::from) } else { Ok(text.into()) }
    }

    fn problem(&self, code: &'static str, place: &SourceLocation, text: String, fix: Option<String>) -> ConfigProblem {
        ConfigProblem {
            code,
            severity: ProblemSeverity::Error,
            place: Some(place.clone()),
            server: Some(self.name.to_string()),
            text,
            fix,
        }
    }

    fn stdio(&self, stdio: &StdioDefinition) -> Result<StdioSpec, ConfigProblem> {
        let (env, hidden) = self.env(stdio)?;
        let mut spec = StdioSpec {
            program: self.program(&stdio.command)?,
            cwd: Some(match &stdio.cwd {
                Some(cwd) => self.path(cwd)?,
                None => self.site.start.prepare(),
            }),
            env,
            hidden,
            inherit_env: stdio.inherit_env,
            ..StdioSpec::default()
        };
        for template in &stdio.args {
            let ExpandedText { text, taken } = self.expand_template(template)?;
            spec.args.push(text.into());
            spec.hidden.extend(taken.into_iter().map(Secret::new));
        }
        Ok(spec)
    }

    /// Returns the environment variables: those of the entry override those of its env file, which override inherited
    /// ones. Also returns the values of variables with `${secret:…}` references, which are always redacted.
    fn env(&self, stdio: &StdioDefinition) -> Result<(ServerVariables, Vec<Secret>), ConfigProblem> {
        let mut env: ServerVariables =
            stdio.env_vars.iter().map(|name| (OsString::from(&name.value), EnvValue::Inherit)).collect();
        if let Some(template) = &stdio.env_file {
            let path = self.path(template)?;
            let found = env_file::read(&path).map_err(|why| {
                let text = format!("cannot read the env file `{}`: {why}", path.display());
                self.problem("env_file", &template.place, text, None)
            })?;
            for (name, value) in found {
                set_variable(&mut env, &name, value);
            }
        }
        let mut hidden = Vec::new();
        for (name, template) in &stdio.env {
            let ExpandedText { text, taken } = self.expand_template(template)?;
            set_variable(&mut env, name, text);
            if parse_template(&template.value).iter().any(|part| matches!(part, TemplatePart::Secret(_))) {
                hidden.extend(taken.into_iter().map(Secret::new));
            }
        }
        Ok((env, hidden))
    }

    fn http(&self, http: &HttpDefinition) -> Result<HttpSpec, ConfigProblem> {
        let (url, taken) = self.url(&http.url)?;
        let mut spec = HttpSpec::new(url);
        spec.hidden = taken.into_iter().map(Secret::new).collect();
        spec.form = http.form;
        for (name, template) in &http.headers {
            spec.headers.push((name.clone(), Secret::new(self.text(template)?)));
        }
        spec.headers_source = self.headers_source(&http.headers_command)?;
        spec.proxy = http.proxy.as_ref().map(|proxy| self.text(proxy)).transpose()?.map(Secret::new);
        spec.extra_ca = http.ca.iter().map(|file| self.path(file)).collect::<Result<_, _>>()?;
        spec.client_certificate = http.client_cert.as_ref().map(|file| self.path(file)).transpose()?;
        spec.mirror_arguments = http.mirror_arguments;
        if let Some(oauth) = &http.oauth {
            spec.login = Box::new(self.login(oauth)?);
            spec.account = oauth.text("account").map(|account| account.value.clone());
        }
        Ok(spec)
    }

    /// Expands and parses the URL. The error does not include the text, since it may contain a secret.
    fn url(&self, template: &SourcedValue<String>) -> Result<(Url, Vec<String>), ConfigProblem> {
        let bad = |text: &str| {
            let fix = "use a URL such as https://example.org/mcp".to_owned();
            self.problem("bad_url", &template.place, text.to_owned(), Some(fix))
        };
        let ExpandedText { text, taken } = self.expand_template(template)?;
        let url = Url::parse(&text).map_err(|_| bad("`url` is not a valid URL"))?;
        match url.scheme() {
            "http" | "https" => Ok((url, taken)),
            _ => Err(bad("`url` does not start with http:// or https://")),
        }
    }
}

fn set_variable(env: &mut ServerVariables, name: &str, value: String) {
    env.retain(|(other, _)| other != name);
    env.push((name.into(), EnvValue::Secret(Secret::new(value))));
}
