//! Built-in model providers.

/// A built-in model provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownProvider {
    /// Name of the provider.
    pub name: &'static str,
    /// API format.
    pub format: ProviderFormat,
    /// Base URL of the API.
    pub base_url: &'static str,
    /// Variable that overrides the base URL. `None` for local providers.
    pub url_variable: Option<&'static str>,
    /// Variable with the API key. `None` for local providers.
    pub key_variable: Option<&'static str>,
    /// Default model.
    pub model: &'static str,
    /// Maximum tokens of a response.
    pub max_tokens: u32,
    /// Size of the context window in tokens.
    pub context_tokens: u64,
}

/// Maximum tokens of a response from a hosted model, including thinking.
const MAX_HOSTED_TOKENS: u32 = 32_000;
/// Maximum tokens of a response from a local model.
const MAX_LOCAL_TOKENS: u32 = 8_192;
/// Context tokens used with hosted models. They support more, at a higher price.
const HOSTED_CONTEXT_TOKENS: u64 = 200_000;
/// Default context tokens of local models.
const LOCAL_CONTEXT_TOKENS: u64 = 32_768;

/// The built-in providers, in the order in which they are tried.
///
/// Models are as of November 2026. Newer Anthropic models are not the default, because their thinking depends on the
/// whole preceding conversation, so old results could not be shortened. `gpt-5.6` is an alias defined by OpenAI. A
/// llama.cpp server has one model and ignores the name.
pub const KNOWN_PROVIDERS: &[KnownProvider] = &[
    KnownProvider {
        name: "anthropic",
        format: ProviderFormat::Anthropic,
        base_url: "https://api.anthropic.com",
        url_variable: Some("ANTHROPIC_BASE_URL"),
        key_variable: Some("ANTHROPIC_API_KEY"),
        model: "claude-sonnet-5",
        max_tokens: MAX_HOSTED_TOKENS,
        context_tokens: HOSTED_CONTEXT_TOKENS,
    },
    KnownProvider {
        name: "openai",
        format: ProviderFormat::Responses,
        base_url: "https://api.openai.com",
        url_variable: Some("OPENAI_BASE_URL"),
        key_variable: Some("OPENAI_API_KEY"),
        model: "gpt-5.6",
        max_tokens: MAX_HOSTED_TOKENS,
        context_tokens: HOSTED_CONTEXT_TOKENS,
    },
    KnownProvider {
        name: "openai-chat",
        format: ProviderFormat::Chat,
        base_url: "https://api.openai.com",
        url_variable: Some("OPENAI_BASE_URL"),
        key_variable: Some("OPENAI_API_KEY"),
        model: "gpt-5.6",
        max_tokens: MAX_HOSTED_TOKENS,
        context_tokens: HOSTED_CONTEXT_TOKENS,
    },
    KnownProvider {
        name: "ollama",
        format: ProviderFormat::Chat,
        base_url: "http://127.0.0.1:11434",
        url_variable: None,
        key_variable: None,
        model: "gpt-oss:20b",
        max_tokens: MAX_LOCAL_TOKENS,
        context_tokens: LOCAL_CONTEXT_TOKENS,
    },
    KnownProvider {
        name: "llama",
        format: ProviderFormat::Chat,
        base_url: "http://127.0.0.1:8080",
        url_variable: None,
        key_variable: None,
        model: "default",
        max_tokens: MAX_LOCAL_TOKENS,
        context_tokens: LOCAL_CONTEXT_TOKENS,
    },
];

/// API format of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderFormat {
    /// Anthropic messages API.
    Anthropic,
    /// OpenAI chat completions API.
    Chat,
    /// OpenAI responses API.
    Responses,
}

impl KnownProvider {
    /// Returns the built-in provider of this name.
    pub fn from_name(name: &str) -> Option<&'static Self> {
        KNOWN_PROVIDERS.iter().find(|known| known.name == name)
    }
}

impl ProviderFormat {
    pub(super) fn from_name(word: &str) -> Option<Self> {
        match word {
            "anthropic" => Some(Self::Anthropic),
            "chat" => Some(Self::Chat),
            "responses" => Some(Self::Responses),
            _ => None,
        }
    }
}
