//! Model selection and provider configuration.
//!
//! Never connects to a provider: reachability shows on the first request. Looking up a key may run a program, which
//! happens on a dedicated thread.

mod missing_model;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio::sync::oneshot;
use url::Url;
use wharf_agent::{AgentLimits, ApiFormat, Model, ModelProvider, ReasoningEffort};
use wharf_config::{
    Config, ConfigProblem, KNOWN_PROVIDERS, KnownProvider, ProviderEffort, ProviderFormat, ProviderSettings,
    ResolveContext, ResolvedProvider,
};
use wharf_net::{Net, NetOptions};
use wharf_spec::Secret;

use crate::config_context::{ConfigContext, problem_failure};
use crate::failure::Failure;
use crate::session::CommandSession;

/// Environment variable that overrides the `model` setting.
const MODEL_VARIABLE: &str = "WHARF_MODEL";
/// Default response limit in tokens for a provider that is neither built in nor configured with one.
const DEFAULT_MAX_TOKENS: u32 = 8_192;

/// The models available from the settings and the environment.
pub struct ModelCatalog {
    configuration: Arc<ConfigContext>,
    config: Arc<Config>,
}

/// A model ready for use.
#[derive(Clone)]
pub struct SelectedModel {
    /// `provider/model`.
    pub name: String,
    pub model: Model,
    pub limits: AgentLimits,
    pub effort: Option<ReasoningEffort>,
}

/// A provider: its built-in defaults and its settings.
#[derive(Clone, Copy)]
struct ProviderSource<'a> {
    name: &'a str,
    known: Option<&'static KnownProvider>,
    written: Option<&'a Result<ProviderSettings, Vec<ConfigProblem>>>,
}

/// A requested model.
struct RequestedModel<'a> {
    source: ProviderSource<'a>,
    /// `None` means the provider's default model.
    model: Option<&'a str>,
}

impl ModelCatalog {
    /// Creates the catalog for a configuration. Makes no connection and needs no key.
    pub fn new(session: &CommandSession, config: &Arc<Config>) -> Self {
        Self { configuration: Arc::clone(&session.configuration), config: Arc::clone(config) }
    }

    /// Opens the named model, or the default one.
    ///
    /// # Errors
    ///
    /// Returns a failure with hints on configuring a model if there is none or its key is missing.
    pub async fn open_model(&self, name: Option<&str>) -> Result<SelectedModel, Failure> {
        let name = self.requested_name(name);
        let RequestedModel { source, model } = self.parse_request(name.as_deref())?;
        let settings = source.settings()?;
        let resolved = match settings {
            Some(settings) => Some(self.resolve(settings.clone()).await?),
            None => None,
        };
        let provider = self.build_provider(source, settings, resolved.as_ref(), model)?;
        let name = format!("{}/{}", source.name, provider.model);
        let net = Net::open(&net_options(resolved.as_ref())).await.map_err(Failure::usage)?;
        let model = Model::new(provider, net).map_err(Failure::usage)?;
        let tool_tokens = settings.and_then(|settings| settings.tool_tokens);
        let limits = AgentLimits { context: context_size(source, settings), tool_tokens, ..AgentLimits::default() };
        Ok(SelectedModel { name, model, limits, effort: settings.and_then(|settings| settings.effort).map(effort) })
    }

    /// Returns the `provider/model` name of the named or default model without looking up its key, or `None` if the
    /// model is evidently unavailable.
    pub fn display_name(&self, name: Option<&str>) -> Option<String> {
        let name = self.requested_name(name);
        let RequestedModel { source, model } = self.parse_request(name.as_deref()).ok()?;
        let model = model.or_else(|| source.default_model())?;
        (!self.lacks_key(&source)).then(|| format!("{}/{model}", source.name))
    }

    /// Returns the context size in tokens of the named or default model.
    pub fn context_size(&self, name: Option<&str>) -> Option<u64> {
        let name = self.requested_name(name);
        let source = self.parse_request(name.as_deref()).ok()?.source;
        Some(context_size(source, source.settings().ok()?))
    }

    /// Lists the selectable models: configured providers, providers with a key in the environment, and local ones.
    pub fn names(&self) -> Vec<String> {
        let can_be_had = |source: &ProviderSource<'_>| match (source.written, source.known) {
            (Some(written), _) => written.is_ok(),
            (None, Some(known)) => known.key_variable.is_none_or(|variable| self.variable(variable).is_some()),
            (None, None) => false,
        };
        let name = |source: ProviderSource<'_>| Some(format!("{}/{}", source.name, source.default_model()?));
        self.sources().filter(can_be_had).filter_map(name).collect()
    }

    /// Returns the requested model name: the argument, then the environment, then the settings.
    fn requested_name(&self, name: Option<&str>) -> Option<String> {
        let settled = || self.config.settings.model.clone();
        name.map(str::to_owned).or_else(|| self.variable(MODEL_VARIABLE)).or_else(settled)
    }

    /// Reports whether a built-in provider needs a key but has no settings, key variable or base-URL variable.
    fn lacks_key(&self, source: &ProviderSource<'_>) -> bool {
        let says = |variable: Option<&str>| variable.is_some_and(|variable| self.variable(variable).is_some());
        let silent = |known: &KnownProvider| {
            known.key_variable.is_some() && !says(known.key_variable) && !says(known.url_variable)
        };
        source.written.is_none() && source.known.is_some_and(silent)
    }

    /// Iterates over the configured providers, then the other built-in ones.
    fn sources(&self) -> impl Iterator<Item = ProviderSource<'_>> {
        let written = &self.config.settings.providers;
        let configured = written.iter().map(|(name, provider)| ProviderSource {
            name,
            known: KnownProvider::from_name(name),
            written: Some(provider),
        });
        let is_written = |known: &KnownProvider| written.iter().any(|(name, _)| name == known.name);
        let others = KNOWN_PROVIDERS.iter().filter(move |known| !is_written(known));
        configured.chain(others.map(|known| ProviderSource { name: known.name, known: Some(known), written: None }))
    }

    fn source(&self, name: &str) -> Option<ProviderSource<'_>> {
        self.sources().find(|source| source.name == name)
    }

    /// Parses `provider/model`, a provider alone, or a model of the default provider without a slash. Model names after
    /// a provider may contain slashes.
    fn parse_request<'a>(&'a self, name: Option<&'a str>) -> Result<RequestedModel<'a>, Failure> {
        let Some(name) = name.filter(|name| !name.trim().is_empty()) else {
            return self.default_provider().map(|source| RequestedModel { source, model: None });
        };
        let (before, after) = name.split_once('/').map_or((name, None), |(before, after)| (before, Some(after)));
        match self.source(before) {
            Some(source) => Ok(RequestedModel { source, model: after.filter(|model| !model.is_empty()) }),
            None if after.is_some() => Err(missing_model::unknown_provider(name, before, self.sources())),
            None => {
                let usual = self
                    .default_provider()
                    .map_err(|failure| missing_model::with_provider_suggestion(failure, before, self.sources()))?;
                Ok(RequestedModel { source: usual, model: Some(name) })
            }
        }
    }

    /// Returns the default provider: that of the `model` setting, else the first usable one.
    fn default_provider(&self) -> Result<ProviderSource<'_>, Failure> {
        let settled = self.config.settings.model.as_deref().and_then(|model| model.split('/').next());
        let found = settled.and_then(|name| self.source(name));
        found
            .or_else(|| self.sources().find(|source| self.is_ready(source)))
            .ok_or_else(|| missing_model::no_model(&self.user_file()))
    }

    /// Reports whether the provider is usable without further settings. A provider without a key variable must be
    /// configured.
    fn is_ready(&self, source: &ProviderSource<'_>) -> bool {
        let has_key = matches!(source.written, Some(Ok(ProviderSettings { api_key: Some(_), .. })));
        match source.known.and_then(|known| known.key_variable) {
            Some(variable) => has_key || self.variable(variable).is_some(),
            None => source.written.is_some(),
        }
    }

    /// Resolves the settings on a dedicated thread: a secret program may be slow.
    async fn resolve(&self, settings: ProviderSettings) -> Result<ResolvedProvider, Failure> {
        let (configuration, config) = (Arc::clone(&self.configuration), Arc::clone(&self.config));
        let (done, resolved) = oneshot::channel();
        let resolve = move || {
            let store = configuration.secret_store(&config.settings);
            let secrets = |name: &str| {
                let found = store.lookup(name).map_err(|error| error.to_string())?;
                Ok(found.value.reveal().to_owned())
            };
            let ConfigContext { environment, places, .. } = &*configuration;
            let with = ResolveContext { around: environment, settings: &config.settings, secrets: &secrets, places };
            // The receiver may have been dropped.
            let _ = done.send(settings.resolve(&with));
        };
        wharf_threads::start_thread("wharf-secret", resolve).map_err(Failure::other)?;
        let resolved = resolved.await.map_err(|_| Failure::other("internal error: the resolver task was cancelled"))?;
        resolved.map_err(|problem| problem_failure(&problem))
    }

    fn build_provider(
        &self,
        source: ProviderSource<'_>,
        settings: Option<&ProviderSettings>,
        resolved: Option<&ResolvedProvider>,
        model: Option<&str>,
    ) -> Result<ModelProvider, Failure> {
        let known = source.known;
        let written_format = settings.and_then(|settings| settings.format).or(known.map(|known| known.format));
        let model =
            model.or_else(|| source.default_model()).ok_or_else(|| missing_model::no_model_named(source.name))?;
        let max_tokens = settings.and_then(|settings| settings.max_tokens).or(known.map(|known| known.max_tokens));
        let (base_url, is_own) = self.base_url(source, resolved)?;
        let key = resolved.and_then(|resolved| resolved.api_key.clone()).or_else(|| self.key_from_env(known));
        if let (Some(known), None, true) = (known, &key, is_own)
            && let Some(variable) = known.key_variable
        {
            return Err(missing_model::no_key(known.name, variable, &self.user_file()));
        }
        Ok(ModelProvider {
            format: format(written_format.ok_or_else(|| Failure::usage("the provider has no `format`"))?),
            base_url,
            key,
            model: model.to_owned(),
            max_tokens: max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            headers: resolved.map(|resolved| resolved.headers.clone()).unwrap_or_default(),
        })
    }

    /// Returns the base URL and whether it is the built-in one. A substitute endpoint may not need a key.
    fn base_url(
        &self,
        source: ProviderSource<'_>,
        resolved: Option<&ResolvedProvider>,
    ) -> Result<(Url, bool), Failure> {
        if let Some(url) = resolved.and_then(|resolved| resolved.base_url.clone()) {
            return Ok((url, false));
        }
        let variable = source.known.and_then(|known| known.url_variable);
        if let Some((variable, text)) = variable.and_then(|variable| Some((variable, self.variable(variable)?))) {
            let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            let bad = || Failure::usage(format_args!("{variable} is not an http:// or https:// URL"));
            return url.map(|url| (url, false)).ok_or_else(bad);
        }
        let own = source.known.and_then(|known| Url::parse(known.base_url).ok());
        own.map(|url| (url, true)).ok_or_else(|| Failure::usage("the provider has no `baseUrl`"))
    }

    fn key_from_env(&self, known: Option<&KnownProvider>) -> Option<Secret> {
        known.and_then(|known| known.key_variable).and_then(|variable| self.variable(variable)).map(Secret::new)
    }

    /// Returns a non-empty environment variable.
    fn variable(&self, name: &str) -> Option<String> {
        let value = self.configuration.environment.var(name)?.to_str()?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    fn user_file(&self) -> String {
        self.configuration.places.user.display().to_string()
    }
}

impl<'a> ProviderSource<'a> {
    /// Returns the provider's settings.
    ///
    /// # Errors
    ///
    /// Fails if the settings are invalid.
    fn settings(self) -> Result<Option<&'a ProviderSettings>, Failure> {
        match self.written {
            None => Ok(None),
            Some(Ok(settings)) => Ok(Some(settings)),
            Some(Err(problems)) => Err(problems.first().map_or_else(
                || Failure::usage(format_args!("invalid settings for provider `{}`", self.name)),
                problem_failure,
            )),
        }
    }

    /// Returns the default model of the provider.
    fn default_model(self) -> Option<&'a str> {
        let written = self.written.and_then(|written| written.as_ref().ok());
        written.and_then(|settings| settings.model.as_deref()).or(self.known.map(|known| known.model))
    }
}

fn net_options(resolved: Option<&ResolvedProvider>) -> NetOptions {
    let mut options = NetOptions::default();
    if let Some(resolved) = resolved {
        options.proxy.clone_from(&resolved.proxy);
        options.extra_ca.clone_from(&resolved.ca);
    }
    options
}

fn format(format: ProviderFormat) -> ApiFormat {
    match format {
        ProviderFormat::Anthropic => ApiFormat::Anthropic,
        ProviderFormat::Chat => ApiFormat::ChatCompletions,
        ProviderFormat::Responses => ApiFormat::Responses,
    }
}

/// Returns the context size in tokens of a provider's model.
fn context_size(source: ProviderSource<'_>, settings: Option<&ProviderSettings>) -> u64 {
    let written = settings.and_then(|settings| settings.context_tokens);
    let known = || source.known.map(|known| known.context_tokens);
    written.or_else(known).unwrap_or(AgentLimits::default().context)
}

fn effort(effort: ProviderEffort) -> ReasoningEffort {
    match effort {
        ProviderEffort::Low => ReasoningEffort::Low,
        ProviderEffort::Medium => ReasoningEffort::Medium,
        ProviderEffort::High => ReasoningEffort::High,
    }
}
