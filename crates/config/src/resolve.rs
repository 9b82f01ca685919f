//! From a server as it was written to one that a host can keep.

mod login;

use std::ffi::OsString;
use std::path::PathBuf;

use url::Url;
use wharf_spec::{
    Admission, EnvValue, HttpSpec, Reconnect, Secret, ServerEntry, ServerName, ServerSettings, ServerSpec, StdioSpec,
    Surroundings,
};

use crate::configured::{Approval, Configured, Described, DescribedHttp, DescribedStdio, Reach, Sited};
use crate::expand::{Expanded, Part, SecretSource, expand, parts};
use crate::settings::Settings;
use crate::{Place, Problem, Severity, env_file};

/// What references are resolved with.
pub struct Resolving<'a> {
    /// The environment and working directory.
    pub around: &'a Surroundings,
    /// What holds for all servers.
    pub settings: &'a Settings,
    /// Where secrets come from.
    pub secrets: &'a SecretSource<'a>,
}

impl Configured {
    /// Expands it into what a host can keep. Fails where it is broken, or a variable or secret is missing.
    ///
    /// Runs what `${secret:…}` needs, so it may block.
    pub fn resolve(&self, with: &Resolving<'_>) -> Result<ServerEntry, Vec<Problem>> {
        let described = self.described.as_ref().map_err(Clone::clone)?;
        let mut entry = described.resolve(&self.name, with).map_err(|problem| vec![problem])?;
        entry.settings.admission = self.admission();
        Ok(entry)
    }

    /// Whether it may be used.
    pub fn admission(&self) -> Admission {
        match self.approval {
            Approval::Needed | Approval::Changed => Admission::Unapproved,
            _ if !self.enabled => Admission::Disabled,
            Approval::NotNeeded | Approval::Approved => Admission::Enabled,
        }
    }
}

impl Described {
    /// Expands it, whoever may use it.
    pub fn resolve(&self, name: &ServerName, with: &Resolving<'_>) -> Result<ServerEntry, Problem> {
        let filling = Filling { name, expands: self.expands, with };
        let spec = match &self.reach {
            Reach::Stdio(stdio) => ServerSpec::Stdio(filling.stdio(stdio)?),
            Reach::Http(http) => ServerSpec::Http(filling.http(http)?),
        };
        Ok(ServerEntry { name: name.clone(), spec, settings: self.settings(with.settings) })
    }

    fn settings(&self, usual: &Settings) -> ServerSettings {
        let mut settings = ServerSettings::default();
        settings.lazy = self.lazy;
        settings.trust = self.trust;
        settings.include_tools.clone_from(&self.include_tools);
        settings.exclude_tools.clone_from(&self.exclude_tools);
        settings.timeout = self.timeout.or(usual.timeout);
        settings.tool_timeouts.clone_from(&self.tool_timeouts);
        settings.startup_timeout = self.startup_timeout;
        settings.max_concurrent = self.max_concurrent;
        settings.reconnect = match (self.reconnect, usual.reconnect) {
            (Some(Err(false)), _) => Reconnect::Off,
            (Some(Ok(backoff)), _) | (_, Some(backoff)) => Reconnect::Backoff(backoff),
            _ => settings.reconnect,
        };
        settings.health_check = self.health_check.or(usual.health_check);
        settings.idle_stop = self.idle_stop.or(settings.idle_stop);
        settings.keep_results = self.keep_results.or(usual.keep_results);
        settings
    }
}

/// Variables by name, in the order in which they were put there.
type Environment = Vec<(OsString, EnvValue)>;

struct Filling<'a> {
    name: &'a ServerName,
    expands: bool,
    with: &'a Resolving<'a>,
}

impl Filling<'_> {
    fn fill(&self, template: &Sited<String>) -> Result<Expanded, Problem> {
        if !self.expands {
            return Ok(Expanded { text: template.value.clone(), taken: Vec::new() });
        }
        expand(&template.value, self.with.around, self.with.secrets)
            .map_err(|error| self.problem(error.code(), &template.place, error.to_string(), Some(error.fix())))
    }

    fn text(&self, template: &Sited<String>) -> Result<String, Problem> {
        self.fill(template).map(|expanded| expanded.text)
    }

    fn path(&self, template: &Sited<String>) -> Result<PathBuf, Problem> {
        self.text(template).map(|text| self.with.around.cwd.join(text))
    }

    fn problem(&self, code: &'static str, place: &Place, text: String, fix: Option<String>) -> Problem {
        Problem {
            code,
            severity: Severity::Error,
            place: Some(place.clone()),
            server: Some(self.name.to_string()),
            text,
            fix,
        }
    }

    fn stdio(&self, stdio: &DescribedStdio) -> Result<StdioSpec, Problem> {
        let (env, hidden) = self.env(stdio)?;
        let mut spec = StdioSpec {
            program: self.text(&stdio.command)?.into(),
            cwd: stdio.cwd.as_ref().map(|cwd| self.path(cwd)).transpose()?,
            env,
            hidden,
            inherit_env: stdio.inherit_env,
            ..StdioSpec::default()
        };
        for template in &stdio.args {
            let Expanded { text, taken } = self.fill(template)?;
            spec.args.push(text.into());
            spec.hidden.extend(taken.into_iter().map(Secret::new));
        }
        Ok(spec)
    }

    /// Its own variables before those of its file, and those before the ones handed down; and what they have of secrets
    /// by name, which is never shown, whatever it looks like.
    fn env(&self, stdio: &DescribedStdio) -> Result<(Environment, Vec<Secret>), Problem> {
        let mut env: Environment =
            stdio.env_vars.iter().map(|name| (OsString::from(&name.value), EnvValue::Inherit)).collect();
        if let Some(template) = &stdio.env_file {
            let path = self.path(template)?;
            let found = env_file::read(&path).map_err(|why| {
                let text = format!("the variables of `{}` cannot be had: {why}", path.display());
                self.problem("env_file", &template.place, text, None)
            })?;
            for (name, value) in found {
                put(&mut env, &name, value);
            }
        }
        let mut hidden = Vec::new();
        for (name, template) in &stdio.env {
            let Expanded { text, taken } = self.fill(template)?;
            put(&mut env, name, text);
            if parts(&template.value).iter().any(|part| matches!(part, Part::Secret(_))) {
                hidden.extend(taken.into_iter().map(Secret::new));
            }
        }
        Ok((env, hidden))
    }

    fn http(&self, http: &DescribedHttp) -> Result<HttpSpec, Problem> {
        let (url, taken) = self.url(&http.url)?;
        let mut spec = HttpSpec::new(url);
        spec.hidden = taken.into_iter().map(Secret::new).collect();
        spec.form = http.form;
        for (name, template) in &http.headers {
            spec.headers.push((name.clone(), Secret::new(self.text(template)?)));
        }
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

    /// What it says is not repeated: a secret may stand anywhere in what is no URL.
    fn url(&self, template: &Sited<String>) -> Result<(Url, Vec<String>), Problem> {
        let bad = |text: &str| {
            let fix = "write it like https://example.org/mcp".to_owned();
            self.problem("bad_url", &template.place, text.to_owned(), Some(fix))
        };
        let Expanded { text, taken } = self.fill(template)?;
        let url = Url::parse(&text).map_err(|_| bad("`url` is no URL"))?;
        match url.scheme() {
            "http" | "https" => Ok((url, taken)),
            _ => Err(bad("`url` does not begin with http:// or https://")),
        }
    }
}

fn put(env: &mut Environment, name: &str, value: String) {
    env.retain(|(other, _)| other != name);
    env.push((name.into(), EnvValue::Secret(Secret::new(value))));
}
