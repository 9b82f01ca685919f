//! Clients for model APIs: three formats, one event type.
//!
//! Covers the communication only. The agent loop decides how to react to responses and errors.

mod anthropic;
mod api_error;
mod call_arguments;
mod chat_completions;
mod definitions;
mod error;
mod event;
#[cfg(test)]
mod fixtures;
mod model;
mod responses;
mod result_images;
mod retry;
mod stream;

use std::fmt;
use std::sync::Arc;

use url::Url;
use wharf_net::{HeaderMap, HeaderName, HeaderValue, header};
use wharf_spec::{HttpSpec, Redactor, Secret};

use crate::conversation::Conversation;

pub use api_error::ApiErrorMessage;
pub use definitions::{
    EncodedTool, EncodedTools, ModelToolDefinition, UnencodableReason, UnencodableTool, encode_tools,
};
pub use error::ModelError;
pub use event::{ModelEvent, StopReason};
pub use model::Model;
pub use stream::ModelStream;

/// Version of Anthropic's API used by this client.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Format of a model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiFormat {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's Chat Completions API, also supported by most local servers.
    ChatCompletions,
    /// OpenAI's Responses API.
    Responses,
}

/// Address, credentials and settings of a model.
#[derive(Debug, Clone)]
pub struct ModelProvider {
    /// Format of the API.
    pub format: ApiFormat,
    /// Base URL of the API, with or without `/v1`.
    pub base_url: Url,
    /// API key; local servers need none.
    pub key: Option<Secret>,
    /// Name of the model.
    pub model: String,
    /// Maximum tokens of a response, including reasoning.
    pub max_tokens: u32,
    /// Additional headers of every request. They override headers with the same name.
    pub headers: Vec<(String, Secret)>,
}

/// A request to a model.
#[derive(Debug, Clone, Copy)]
pub struct CompletionRequest<'a> {
    /// The conversation so far.
    pub conversation: &'a Conversation,
    /// Tools that the model may call, compiled for its format.
    pub tools: &'a Arc<EncodedTools>,
    /// Constraint on tool calls.
    pub tool_choice: ToolChoice<'a>,
    /// Reasoning effort. `None` uses the model's default.
    pub effort: Option<ReasoningEffort>,
}

/// Constraint on a model's tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    /// The model decides.
    #[default]
    Auto,
    /// No calls.
    Never,
    /// At least one call of any tool.
    Any,
    /// A call of this tool.
    Tool(&'a str),
}

/// Reasoning effort of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningEffort {
    /// Low effort.
    Low,
    /// Medium effort.
    Medium,
    /// High effort.
    High,
}

impl ApiFormat {
    /// Returns the environment variable that usually holds the key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::ChatCompletions | Self::Responses => "OPENAI_API_KEY",
        }
    }

    fn endpoint_path(self) -> &'static str {
        match self {
            Self::Anthropic => "messages",
            Self::ChatCompletions => "chat/completions",
            Self::Responses => "responses",
        }
    }
}

impl fmt::Display for ApiFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anthropic => "anthropic",
            Self::ChatCompletions => "chat",
            Self::Responses => "responses",
        })
    }
}

impl ReasoningEffort {
    fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl ModelProvider {
    /// Identifies the origin of a raw block: the format, the host and the model.
    pub fn source_id(&self) -> String {
        let (host, model) = (self.base_url.host_str().unwrap_or_default(), &self.model);
        match self.base_url.port() {
            Some(port) => format!("{} {host}:{port} {model}", self.format),
            None => format!("{} {host} {model}", self.format),
        }
    }

    /// Returns the URL for requests. Appends `v1` to a base URL without a path, and in Anthropic's format to every base
    /// URL that does not end in it, because it is usually omitted there.
    fn request_url(&self) -> Url {
        let mut url = self.base_url.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        let missing = base.is_empty() || self.format == ApiFormat::Anthropic && !base.ends_with("/v1");
        let version = if missing { "/v1" } else { "" };
        url.set_path(&format!("{base}{version}/{}", self.format.endpoint_path()));
        url
    }

    fn headers(&self) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::ACCEPT, HeaderValue::from_static("text/event-stream")),
            (header::USER_AGENT, HeaderValue::from_static(concat!("wharf/", env!("CARGO_PKG_VERSION")))),
        ]);
        if self.format == ApiFormat::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
        }
        if let Some(key) = &self.key {
            let (name, value) = match self.format {
                ApiFormat::Anthropic => (HeaderName::from_static("x-api-key"), key.clone()),
                _ => (header::AUTHORIZATION, Secret::new(format!("Bearer {}", key.reveal()))),
            };
            headers.insert(name, sensitive_value(&value).ok_or(ModelError::BadKey)?);
        }
        for (name, value) in &self.headers {
            let bad = || ModelError::BadHeader(name.clone());
            let known = HeaderName::try_from(name.as_str()).map_err(|_| bad())?;
            headers.insert(known, sensitive_value(value).ok_or_else(bad)?);
        }
        Ok(headers)
    }

    /// Returns a redactor for the credentials: the key, the values of the headers, and secrets in the URL.
    fn redactor(&self) -> Redactor {
        let mut spec = HttpSpec::new(self.base_url.clone());
        spec.headers.clone_from(&self.headers);
        spec.hidden.extend(self.key.clone());
        Redactor::for_http(&spec)
    }

    /// Reports whether the API is OpenAI's own. Compatible servers do not support some parameters that OpenAI accepts
    /// or requires.
    fn is_openai(&self) -> bool {
        self.base_url.host_str().is_some_and(|host| host == "openai.com" || host.ends_with(".openai.com"))
    }
}

fn sensitive_value(value: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(value.reveal()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::fixtures::provider;
    use super::*;

    #[test]
    fn request_url_is_derived_from_base_url_variants() {
        use ApiFormat::{Anthropic, ChatCompletions, Responses};
        for (format, base, expected) in [
            (Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            (Anthropic, "https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
            (Anthropic, "https://proxy.example/claude", "https://proxy.example/claude/v1/messages"),
            (ChatCompletions, "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            (ChatCompletions, "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/chat/completions"),
            (ChatCompletions, "https://x.example/openai/", "https://x.example/openai/chat/completions"),
            (Responses, "http://127.0.0.1:8080/v1?api=2", "http://127.0.0.1:8080/v1/responses?api=2"),
        ] {
            assert_eq!(provider(format, base).request_url().as_str(), expected);
        }
    }

    #[test]
    fn source_id_contains_host_and_model() {
        let source = |base: &str, model: &str| {
            ModelProvider { model: model.into(), ..provider(ApiFormat::Responses, base) }.source_id()
        };
        assert_eq!(source("https://api.openai.com/v1", "gpt-5.6"), "responses api.openai.com gpt-5.6");
        assert_eq!(source("http://127.0.0.1:8080", "small"), "responses 127.0.0.1:8080 small");
    }

    #[test]
    fn credentials_are_redacted_in_keys_headers_and_urls() {
        let mut provider = provider(ApiFormat::ChatCompletions, "https://me:passed-by@h.example/v1?key=in-the-query");
        provider.key = Some(Secret::new("key-0001"));
        provider.headers = [("api-key", "header-2"), ("Authorization", "Bearer token-3")]
            .map(|(name, value)| (name.to_owned(), Secret::new(value)))
            .to_vec();
        let text = "key-0001 header-2 token-3 in-the-query passed-by gpt-5";
        assert_eq!(provider.redactor().redact(text), "*** *** *** *** *** gpt-5");
    }

    #[test]
    fn api_key_header_depends_on_format_and_is_redacted() {
        for (format, name, value) in [
            (ApiFormat::Anthropic, "x-api-key", "k-1"),
            (ApiFormat::ChatCompletions, "authorization", "Bearer k-1"),
            (ApiFormat::Responses, "authorization", "Bearer k-1"),
        ] {
            let mut provider = provider(format, "http://127.0.0.1:1");
            assert!(!provider.headers().unwrap().contains_key(name), "{format}");
            provider.key = Some(Secret::new("k-1"));
            provider.headers.push(("X-Team".into(), Secret::new("blue")));
            let headers = provider.headers().unwrap();
            assert_eq!((headers[name].to_str().unwrap(), headers["x-team"].to_str().unwrap()), (value, "blue"));
            assert!(!format!("{provider:?} {headers:?}").contains("k-1"));
        }
        let mut provider = provider(ApiFormat::Anthropic, "http://127.0.0.1:1");
        provider.headers.push(("bad name".into(), Secret::new("x")));
        assert_eq!(provider.headers(), Err(ModelError::BadHeader("bad name".into())));
        provider.key = Some(Secret::new("two\nlines"));
        assert_eq!(provider.headers(), Err(ModelError::BadKey));
    }
}
