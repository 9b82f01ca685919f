//! How models are reached, as a configuration says it. Which providers need none is in `known`.

mod known;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use url::Url;
use wharf_spec::{Secret, ServerName, nearest};

use crate::checked::{Checked, Fault, check, shown};
use crate::configured::Sited;
use crate::entry;
use crate::expand::{References, expand};
use crate::fields::PROVIDER;
use crate::tree::{Member, Position, Value};
use crate::{Place, Problem, Resolving, Severity};

pub use known::{KNOWN_PROVIDERS, KnownProvider, ProviderFormat};

/// How much a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderEffort {
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

/// A provider as it was written: nothing is expanded yet. What is absent is as the known provider of the name has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderSettings {
    /// Where its key stands.
    pub place: Place,
    /// What its API speaks.
    pub format: Option<ProviderFormat>,
    /// Where its API begins.
    pub base_url: Option<Sited<String>>,
    /// What opens it.
    pub api_key: Option<Sited<Secret>>,
    /// Headers by name.
    pub headers: Vec<(String, Sited<Secret>)>,
    /// The model that is used where only the provider is named.
    pub model: Option<String>,
    /// The most tokens of an answer.
    pub max_tokens: Option<u32>,
    /// Tokens that fit into the model's context.
    pub context_tokens: Option<u64>,
    /// How much it thinks.
    pub effort: Option<ProviderEffort>,
    /// The proxy to go through.
    pub proxy: Option<Sited<Secret>>,
    /// Files of certificates to trust.
    pub ca: Vec<Sited<String>>,
    /// Whether `${…}` is expanded.
    pub expands: bool,
}

/// What a provider's texts stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedProvider {
    /// Where its API begins.
    pub base_url: Option<Url>,
    /// What opens it.
    pub api_key: Option<Secret>,
    /// Headers by name.
    pub headers: Vec<(String, Secret)>,
    /// The proxy to go through.
    pub proxy: Option<Secret>,
    /// Files of certificates to trust.
    pub ca: Vec<PathBuf>,
}

impl ProviderEffort {
    fn of(word: &str) -> Option<Self> {
        match word {
            "low" => Some(Self::Low),
            "medium" => Some(Self::Medium),
            "high" => Some(Self::High),
            _ => None,
        }
    }
}

/// A provider that was read, and what is odd about it.
pub(crate) struct Reading {
    pub provider: Result<ProviderSettings, Vec<Fault>>,
    pub warnings: Vec<Fault>,
}

/// Reads one member of `providers`.
pub(crate) fn read(member: &Member, file: &Arc<Path>, expands: bool) -> Reading {
    let Value::Map(members) = &member.node.value else {
        let text = format!("`{}` is {}, not an object", shown(&member.key), member.node.value.kind());
        let fault = Fault::new("wrong_type", member.node.at, text);
        return Reading { provider: Err(vec![fault]), warnings: Vec::new() };
    };
    let mut fields = check(members, &[PROVIDER]);
    let warnings = entry::unknown(&fields, PROVIDER);
    let mut faults = std::mem::take(&mut fields.faults);
    faults.extend(missing(member, &fields));
    let provider = if faults.is_empty() { Ok(described(member, &fields, file, expands)) } else { Err(faults) };
    Reading { provider, warnings }
}

/// What nobody can guess: who a provider of an unknown name is. A name with a slash could not be told from a model's.
fn missing(member: &Member, fields: &Checked<'_>) -> Vec<Fault> {
    let name = shown(&member.key);
    if ServerName::new(&member.key).is_err() {
        let text = format!("`{name}` cannot be the name of a provider");
        return vec![Fault::new("bad_id", member.at, text).fix("use 1 to 64 of `A-Z`, `a-z`, `0-9`, `_` and `-`")];
    }
    if KnownProvider::named(&member.key).is_some() {
        return Vec::new();
    }
    let absent = ["format", "baseUrl"].into_iter().filter(|key| fields.member(key).is_none());
    let meant = nearest(&member.key, KNOWN_PROVIDERS.iter().map(|known| known.name));
    let fault = |key: &str| {
        let text = format!("the provider `{name}` has no `{key}`, and is none that is known without");
        let fix = match (key, meant) {
            (_, Some(meant)) => format!("did you mean `{meant}`?"),
            ("format", None) => "add `\"format\": \"chat\"`, or `anthropic` or `responses`".to_owned(),
            (key, None) => format!("add `\"{key}\": \"…\"`"),
        };
        Fault::new("missing_key", member.at, text).fix(fix)
    };
    absent.map(fault).collect()
}

fn described(member: &Member, fields: &Checked<'_>, file: &Arc<Path>, expands: bool) -> ProviderSettings {
    let place = |at: Position| Place { file: Arc::clone(file), at };
    let text = |key: &str| fields.text(key).map(|(text, at)| Sited { value: text.to_owned(), place: place(at) });
    let hidden = |text: &str, at: Position| Sited { value: Secret::new(text), place: place(at) };
    let secret = |key: &str| fields.text(key).map(|(text, at)| hidden(text, at));
    let header = |member: &Member| Some((member.key.clone(), hidden(member.node.text()?, member.node.at)));
    let word = |key: &str| fields.text(key).map(|(word, _)| word);
    ProviderSettings {
        place: place(member.at),
        format: word("format").and_then(ProviderFormat::of),
        base_url: text("baseUrl"),
        api_key: secret("apiKey"),
        headers: fields.map("headers").iter().filter_map(header).collect(),
        model: word("model").map(str::to_owned),
        max_tokens: fields.count("maxTokens").and_then(|count| u32::try_from(count).ok()),
        context_tokens: fields.count("contextTokens"),
        effort: word("effort").and_then(ProviderEffort::of),
        proxy: secret("proxy"),
        ca: fields
            .texts("ca")
            .into_iter()
            .map(|(text, at)| Sited { value: text.to_owned(), place: place(at) })
            .collect(),
        expands,
    }
}

impl ProviderSettings {
    /// Expands its texts. Fails where a variable or secret is missing, or the address is none.
    ///
    /// Runs what `${secret:…}` needs, so it may block.
    pub fn resolve(&self, with: &Resolving<'_>) -> Result<ResolvedProvider, Problem> {
        let headers = self.headers.iter().map(|(name, value)| Ok((name.clone(), self.hidden(value, with)?)));
        let path = |file: &Sited<String>| {
            let text = self.fill(&file.value, &file.place, with)?;
            // Settings of providers are the user's, and so are the files they stand in.
            Ok(file.place.file.parent().unwrap_or(Path::new("/")).join(text))
        };
        Ok(ResolvedProvider {
            base_url: self.base_url.as_ref().map(|url| self.url(url, with)).transpose()?,
            api_key: self.api_key.as_ref().map(|key| self.hidden(key, with)).transpose()?,
            headers: headers.collect::<Result<_, Problem>>()?,
            proxy: self.proxy.as_ref().map(|proxy| self.hidden(proxy, with)).transpose()?,
            ca: self.ca.iter().map(path).collect::<Result<_, Problem>>()?,
        })
    }

    fn hidden(&self, text: &Sited<Secret>, with: &Resolving<'_>) -> Result<Secret, Problem> {
        self.fill(text.value.reveal(), &text.place, with).map(Secret::new)
    }

    fn fill(&self, text: &str, place: &Place, with: &Resolving<'_>) -> Result<String, Problem> {
        if !self.expands {
            return Ok(text.to_owned());
        }
        let Resolving { around, secrets, .. } = *with;
        let expanded = expand(text, &References { around, secrets, project: None });
        expanded
            .map(|expanded| expanded.text)
            .map_err(|error| problem(error.code(), place, error.to_string(), error.fix()))
    }

    /// What it says is not repeated: a secret may stand anywhere in what is no URL.
    fn url(&self, url: &Sited<String>, with: &Resolving<'_>) -> Result<Url, Problem> {
        let parsed = Url::parse(&self.fill(&url.value, &url.place, with)?).ok();
        let usable = parsed.filter(|parsed| matches!(parsed.scheme(), "http" | "https"));
        usable.ok_or_else(|| {
            let text = "`baseUrl` is no URL that begins with http:// or https://".to_owned();
            problem("bad_url", &url.place, text, "write it like https://example.org/v1".to_owned())
        })
    }
}

fn problem(code: &'static str, place: &Place, text: String, fix: String) -> Problem {
    let (severity, place) = (Severity::Error, Some(place.clone()));
    Problem { code, severity, place, server: None, text, fix: Some(fix) }
}
