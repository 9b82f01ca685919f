//! Configuration of model providers. Module `known` has the built-in providers.

mod known;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use url::Url;
use wharf_spec::{Secret, ServerName, closest_name};

use crate::entry;
use crate::expand::{ReferenceSources, expand};
use crate::fields::PROVIDER;
use crate::server_definition::SourcedValue;
use crate::tree::{ConfigMember, ConfigValue, TextPosition};
use crate::validate::{ValidatedObject, ValidationFault, displayed_key, validate_object};
use crate::{ConfigProblem, ProblemSeverity, ResolveContext, SourceLocation};

pub use known::{KNOWN_PROVIDERS, KnownProvider, ProviderFormat};

/// Reasoning effort of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderEffort {
    /// Low effort.
    Low,
    /// Medium effort.
    Medium,
    /// High effort.
    High,
}

/// A provider's settings as written, before expansion. Missing values default to those of the built-in provider of the
/// same name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderSettings {
    /// Location of its key.
    pub place: SourceLocation,
    /// API format.
    pub format: Option<ProviderFormat>,
    /// Base URL of the API.
    pub base_url: Option<SourcedValue<String>>,
    /// API key.
    pub api_key: Option<SourcedValue<Secret>>,
    /// Headers by name.
    pub headers: Vec<(String, SourcedValue<Secret>)>,
    /// Default model, used if only the provider is given.
    pub model: Option<String>,
    /// Maximum tokens of a response.
    pub max_tokens: Option<u32>,
    /// Size of the context window in tokens.
    pub context_tokens: Option<u64>,
    /// Maximum tokens of tool definitions; with more, the model searches for tools.
    pub tool_tokens: Option<u64>,
    /// Reasoning effort.
    pub effort: Option<ProviderEffort>,
    /// Proxy URL.
    pub proxy: Option<SourcedValue<Secret>>,
    /// Files of trusted CA certificates.
    pub ca: Vec<SourcedValue<String>>,
    /// Expands `${…}` references.
    pub expands: bool,
}

/// A provider's values after expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedProvider {
    /// Base URL of the API.
    pub base_url: Option<Url>,
    /// API key.
    pub api_key: Option<Secret>,
    /// Headers by name.
    pub headers: Vec<(String, Secret)>,
    /// Proxy URL.
    pub proxy: Option<Secret>,
    /// Files of trusted CA certificates.
    pub ca: Vec<PathBuf>,
}

impl ProviderEffort {
    fn from_name(word: &str) -> Option<Self> {
        match word {
            "low" => Some(Self::Low),
            "medium" => Some(Self::Medium),
            "high" => Some(Self::High),
            _ => None,
        }
    }
}

/// A parsed provider and its warnings.
pub(crate) struct ParsedProvider {
    pub provider: Result<ProviderSettings, Vec<ValidationFault>>,
    pub warnings: Vec<ValidationFault>,
}

/// Parses one member of `providers`.
pub(crate) fn parse_provider(member: &ConfigMember, file: &Arc<Path>, expands: bool) -> ParsedProvider {
    let ConfigValue::Map(members) = &member.node.value else {
        let text = format!("`{}` is {}, not an object", displayed_key(&member.key), member.node.value.type_name());
        let fault = ValidationFault::new("wrong_type", member.node.at, text);
        return ParsedProvider { provider: Err(vec![fault]), warnings: Vec::new() };
    };
    let mut fields = validate_object(members, &[PROVIDER]);
    let warnings = entry::unknown_key_faults(&fields, PROVIDER);
    let mut faults = std::mem::take(&mut fields.faults);
    faults.extend(find_missing_keys(member, &fields));
    let provider = if faults.is_empty() { Ok(build_settings(member, &fields, file, expands)) } else { Err(faults) };
    ParsedProvider { provider, warnings }
}

/// Reports an invalid name, and missing keys of a provider that is not built in. A name with a slash could not be
/// distinguished from a model.
fn find_missing_keys(member: &ConfigMember, fields: &ValidatedObject<'_>) -> Vec<ValidationFault> {
    let name = displayed_key(&member.key);
    if ServerName::new(&member.key).is_err() {
        let text = format!("`{name}` is not a valid provider name");
        return vec![
            ValidationFault::new("bad_id", member.at, text)
                .fix("use 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `_` and `-`"),
        ];
    }
    if KnownProvider::from_name(&member.key).is_some() {
        return Vec::new();
    }
    let absent = ["format", "baseUrl"].into_iter().filter(|key| fields.member(key).is_none());
    let meant = closest_name(&member.key, KNOWN_PROVIDERS.iter().map(|known| known.name));
    let fault = |key: &str| {
        let text = format!("the provider `{name}` is not built in and needs `{key}`");
        let fix = match (key, meant) {
            (_, Some(meant)) => format!("did you mean `{meant}`?"),
            ("format", None) => "add `\"format\": \"chat\"`, or `anthropic` or `responses`".to_owned(),
            (key, None) => format!("add `\"{key}\": \"…\"`"),
        };
        ValidationFault::new("missing_key", member.at, text).fix(fix)
    };
    absent.map(fault).collect()
}

fn build_settings(
    member: &ConfigMember,
    fields: &ValidatedObject<'_>,
    file: &Arc<Path>,
    expands: bool,
) -> ProviderSettings {
    let place = |at: TextPosition| SourceLocation { file: Arc::clone(file), at };
    let text = |key: &str| fields.text(key).map(|(text, at)| SourcedValue { value: text.to_owned(), place: place(at) });
    let hidden = |text: &str, at: TextPosition| SourcedValue { value: Secret::new(text), place: place(at) };
    let secret = |key: &str| fields.text(key).map(|(text, at)| hidden(text, at));
    let header = |member: &ConfigMember| Some((member.key.clone(), hidden(member.node.text()?, member.node.at)));
    let word = |key: &str| fields.text(key).map(|(word, _)| word);
    ProviderSettings {
        place: place(member.at),
        format: word("format").and_then(ProviderFormat::from_name),
        base_url: text("baseUrl"),
        api_key: secret("apiKey"),
        headers: fields.map("headers").iter().filter_map(header).collect(),
        model: word("model").map(str::to_owned),
        max_tokens: fields.count("maxTokens").and_then(|count| u32::try_from(count).ok()),
        context_tokens: fields.count("contextTokens"),
        tool_tokens: fields.count("toolTokens"),
        effort: word("effort").and_then(ProviderEffort::from_name),
        proxy: secret("proxy"),
        ca: fields
            .texts("ca")
            .into_iter()
            .map(|(text, at)| SourcedValue { value: text.to_owned(), place: place(at) })
            .collect(),
        expands,
    }
}

impl ProviderSettings {
    /// Expands the provider's texts.
    ///
    /// Looks up secrets and may run `secretCommand`, so it may block.
    ///
    /// # Errors
    /// Returns a [`ConfigProblem`] if a variable or secret is missing, or if the URL is invalid.
    pub fn resolve(&self, with: &ResolveContext<'_>) -> Result<ResolvedProvider, ConfigProblem> {
        let headers = self.headers.iter().map(|(name, value)| Ok((name.clone(), self.expand_secret(value, with)?)));
        let path = |file: &SourcedValue<String>| {
            let text = self.expand_text(&file.value, &file.place, with)?;
            // Provider settings come from the user's own files only, so paths are relative to such a file.
            Ok(file.place.file.parent().unwrap_or(Path::new("/")).join(text))
        };
        Ok(ResolvedProvider {
            base_url: self.base_url.as_ref().map(|url| self.url(url, with)).transpose()?,
            api_key: self.api_key.as_ref().map(|key| self.expand_secret(key, with)).transpose()?,
            headers: headers.collect::<Result<_, ConfigProblem>>()?,
            proxy: self.proxy.as_ref().map(|proxy| self.expand_secret(proxy, with)).transpose()?,
            ca: self.ca.iter().map(path).collect::<Result<_, ConfigProblem>>()?,
        })
    }

    fn expand_secret(&self, text: &SourcedValue<Secret>, with: &ResolveContext<'_>) -> Result<Secret, ConfigProblem> {
        self.expand_text(text.value.reveal(), &text.place, with).map(Secret::new)
    }

    fn expand_text(
        &self,
        text: &str,
        place: &SourceLocation,
        with: &ResolveContext<'_>,
    ) -> Result<String, ConfigProblem> {
        if !self.expands {
            return Ok(text.to_owned());
        }
        let ResolveContext { around, secrets, .. } = *with;
        let expanded = expand(text, &ReferenceSources { around, secrets, project: None });
        expanded
            .map(|expanded| expanded.text)
            .map_err(|error| problem(error.code(), place, error.to_string(), error.fix()))
    }

    /// Expands and parses the base URL. The error does not include the text, since it may contain a secret.
    fn url(&self, url: &SourcedValue<String>, with: &ResolveContext<'_>) -> Result<Url, ConfigProblem> {
        let parsed = Url::parse(&self.expand_text(&url.value, &url.place, with)?).ok();
        let usable = parsed.filter(|parsed| matches!(parsed.scheme(), "http" | "https"));
        usable.ok_or_else(|| {
            let text = "`baseUrl` is not a valid http:// or https:// URL".to_owned();
            problem("bad_url", &url.place, text, "use a URL such as https://example.org/v1".to_owned())
        })
    }
}

fn problem(code: &'static str, place: &SourceLocation, text: String, fix: String) -> ConfigProblem {
    let (severity, place) = (ProblemSeverity::Error, Some(place.clone()));
    ConfigProblem { code, severity, place, server: None, text, fix: Some(fix) }
}
