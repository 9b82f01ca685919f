//! Models behind an API: three formats, one kind of event.
//!
//! Owns what goes over the wire and nothing of what to do about it: whoever holds the conversation decides that.

mod anthropic;
mod arguments;
mod chat;
mod definitions;
mod error;
mod event;
mod model;
mod pictures;
mod responses;
mod retry;
mod said;
#[cfg(test)]
mod samples;
mod stream;

use std::fmt;
use std::sync::Arc;

use url::Url;
use wharf_net::{HeaderMap, HeaderName, HeaderValue, header};
use wharf_spec::{HttpSpec, Redactor, Secret};

use crate::conversation::Conversation;

pub use definitions::{Compiled, Definition, Offered, Withheld, WithheldReason, compile};
pub use error::ModelError;
pub use event::{ModelEvent, Stop};
pub use model::Model;
pub use said::Said;
pub use stream::Stream;

/// The version of Anthropic's API that is spoken here.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// What an API speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions, which most local servers speak as well.
    ChatCompletions,
    /// OpenAI's responses.
    Responses,
}

/// Where a model is, and how it is asked.
#[derive(Debug, Clone)]
pub struct Provider {
    /// What is spoken there.
    pub format: Format,
    /// Where the API begins, with or without its `/v1`.
    pub base_url: Url,
    /// What opens it; local servers need none.
    pub key: Option<Secret>,
    /// Which model.
    pub model: String,
    /// The most tokens of an answer, thinking included.
    pub max_tokens: u32,
    /// What goes with every request besides. These win over headers of the same name.
    pub headers: Vec<(String, Secret)>,
}

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What was said so far.
    pub conversation: &'a Conversation,
    /// What the model may call, compiled for its format.
    pub tools: &'a Arc<Compiled>,
    /// Whether it has to.
    pub tool_choice: ToolChoice<'a>,
    /// How much it is to think before it speaks; `None` leaves that to the model.
    pub effort: Option<Effort>,
}

/// Whether a model may call tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    /// As it likes.
    #[default]
    Auto,
    /// It may not.
    Never,
    /// It has to call one.
    Any,
    /// It has to call this one.
    Tool(&'a str),
}

/// How much a model is to think before it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

impl Format {
    /// Where the key is usually kept in the environment.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::ChatCompletions | Self::Responses => "OPENAI_API_KEY",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Anthropic => "messages",
            Self::ChatCompletions => "chat/completions",
            Self::Responses => "responses",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anthropic => "anthropic",
            Self::ChatCompletions => "chat",
            Self::Responses => "responses",
        })
    }
}

impl Effort {
    fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl Provider {
    /// Names who wrote a raw block: the format, the host it came from, and the model there.
    pub fn source(&self) -> String {
        let (host, model) = (self.base_url.host_str().unwrap_or_default(), &self.model);
        match self.base_url.port() {
            Some(port) => format!("{} {host}:{port} {model}", self.format),
            None => format!("{} {host} {model}", self.format),
        }
    }

    /// Where requests go. An address without a path gets the usual `v1`, and so does one of Anthropic's format that does
    /// not end in it, because there nobody writes it down.
    fn endpoint(&self) -> Url {
        let mut url = self.base_url.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        let missing = base.is_empty() || self.format == Format::Anthropic && !base.ends_with("/v1");
        let version = if missing { "/v1" } else { "" };
        url.set_path(&format!("{base}{version}/{}", self.format.path()));
        url
    }

    fn headers(&self) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::ACCEPT, HeaderValue::from_static("text/event-stream")),
            (header::USER_AGENT, HeaderValue::from_static(concat!("wharf/", env!("CARGO_PKG_VERSION")))),
        ]);
        if self.format == Format::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
        }
        if let Some(key) = &self.key {
            let (name, value) = match self.format {
                Format::Anthropic => (HeaderName::from_static("x-api-key"), key.clone()),
                _ => (header::AUTHORIZATION, Secret::new(format!("Bearer {}", key.reveal()))),
            };
            headers.insert(name, hidden(&value).ok_or(ModelError::BadKey)?);
        }
        for (name, value) in &self.headers {
            let bad = || ModelError::BadHeader(name.clone());
            let known = HeaderName::try_from(name.as_str()).map_err(|_| bad())?;
            headers.insert(known, hidden(value).ok_or_else(bad)?);
        }
        Ok(headers)
    }

    /// Hides what opens the API: the key, what the headers carry, and what stands in the address.
    fn redactor(&self) -> Redactor {
        let mut spec = HttpSpec::new(self.base_url.clone());
        spec.headers.clone_from(&self.headers);
        spec.hidden.extend(self.key.clone());
        Redactor::for_address(&spec)
    }

    /// Whether OpenAI itself is asked, and not one of the many who speak its formats: some of what it takes, or insists
    /// on, is unknown to the others.
    fn is_openai(&self) -> bool {
        self.base_url.host_str().is_some_and(|host| host == "openai.com" || host.ends_with(".openai.com"))
    }
}

fn hidden(value: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(value.reveal()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::samples::provider;
    use super::*;

    #[test]
    fn a_base_url_is_taken_as_people_write_it() {
        use Format::{Anthropic, ChatCompletions, Responses};
        for (format, base, expected) in [
            (Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            (Anthropic, "https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
            (Anthropic, "https://proxy.example/claude", "https://proxy.example/claude/v1/messages"),
            (ChatCompletions, "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            (ChatCompletions, "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/chat/completions"),
            (ChatCompletions, "https://x.example/openai/", "https://x.example/openai/chat/completions"),
            (Responses, "http://127.0.0.1:8080/v1?api=2", "http://127.0.0.1:8080/v1/responses?api=2"),
        ] {
            assert_eq!(provider(format, base).endpoint().as_str(), expected);
        }
    }

    #[test]
    fn a_block_is_of_its_model_as_much_as_of_its_host() {
        let source =
            |base: &str, model: &str| Provider { model: model.into(), ..provider(Format::Responses, base) }.source();
        assert_eq!(source("https://api.openai.com/v1", "gpt-5.6"), "responses api.openai.com gpt-5.6");
        assert_eq!(source("http://127.0.0.1:8080", "small"), "responses 127.0.0.1:8080 small");
    }

    #[test]
    fn what_opens_an_api_is_hidden_wherever_it_stands() {
        let mut provider = provider(Format::ChatCompletions, "https://me:passed-by@h.example/v1?key=in-the-query");
        provider.key = Some(Secret::new("key-0001"));
        provider.headers = [("api-key", "header-2"), ("Authorization", "Bearer token-3")]
            .map(|(name, value)| (name.to_owned(), Secret::new(value)))
            .to_vec();
        let text = "key-0001 header-2 token-3 in-the-query passed-by gpt-5";
        assert_eq!(provider.redactor().redact(text), "*** *** *** *** *** gpt-5");
    }

    #[test]
    fn a_key_goes_where_the_format_wants_it_and_is_never_shown() {
        for (format, name, value) in [
            (Format::Anthropic, "x-api-key", "k-1"),
            (Format::ChatCompletions, "authorization", "Bearer k-1"),
            (Format::Responses, "authorization", "Bearer k-1"),
        ] {
            let mut provider = provider(format, "http://127.0.0.1:1");
            assert!(!provider.headers().unwrap().contains_key(name), "{format}");
            provider.key = Some(Secret::new("k-1"));
            provider.headers.push(("X-Team".into(), Secret::new("blue")));
            let headers = provider.headers().unwrap();
            assert_eq!((headers[name].to_str().unwrap(), headers["x-team"].to_str().unwrap()), (value, "blue"));
            assert!(!format!("{provider:?} {headers:?}").contains("k-1"));
        }
        let mut provider = provider(Format::Anthropic, "http://127.0.0.1:1");
        provider.headers.push(("bad name".into(), Secret::new("x")));
        assert_eq!(provider.headers(), Err(ModelError::BadHeader("bad name".into())));
        provider.key = Some(Secret::new("two\nlines"));
        assert_eq!(provider.headers(), Err(ModelError::BadKey));
    }
}
