//! The providers of models that need no configuration.

/// A provider that needs no configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownProvider {
    /// What it is called.
    pub name: &'static str,
    /// What its API speaks.
    pub format: ProviderFormat,
    /// Where its API begins.
    pub base_url: &'static str,
    /// The variable that says where else; none is looked at for servers of this machine.
    pub url_variable: Option<&'static str>,
    /// The variable with its key; servers of this machine need none.
    pub key_variable: Option<&'static str>,
    /// The model that is used where nobody names one.
    pub model: &'static str,
    /// The most tokens of an answer.
    pub max_tokens: u32,
    /// Tokens of context that are used.
    pub context_tokens: u64,
}

/// The most tokens of an answer of a model that somebody else runs, which is what it thinks and what it says.
const LONG_ANSWER: u32 = 32_000;
/// The same of one that runs here, where everything is smaller.
const SHORT_ANSWER: u32 = 8_192;
/// Tokens of context that are used of what somebody else runs. Models take more, at a price.
const LARGE_CONTEXT: u64 = 200_000;
/// What fits into a model that runs here, unless somebody says otherwise.
const SMALL_CONTEXT: u64 = 32_768;

/// The providers that need no configuration, in the order in which they are tried.
///
/// The models are as of November 2026. Anthropic has newer ones than the one named here, whose thinking is bound to
/// everything said before it, so that old results could not be shortened. `gpt-5.6` is an alias of its maker's. A local
/// server of llama.cpp has one model and does not look at the name.
pub const KNOWN_PROVIDERS: &[KnownProvider] = &[
    KnownProvider {
        name: "anthropic",
        format: ProviderFormat::Anthropic,
        base_url: "https://api.anthropic.com",
        url_variable: Some("ANTHROPIC_BASE_URL"),
        key_variable: Some("ANTHROPIC_API_KEY"),
        model: "claude-sonnet-5",
        max_tokens: LONG_ANSWER,
        context_tokens: LARGE_CONTEXT,
    },
    KnownProvider {
        name: "openai",
        format: ProviderFormat::Responses,
        base_url: "https://api.openai.com",
        url_variable: Some("OPENAI_BASE_URL"),
        key_variable: Some("OPENAI_API_KEY"),
        model: "gpt-5.6",
        max_tokens: LONG_ANSWER,
        context_tokens: LARGE_CONTEXT,
    },
    KnownProvider {
        name: "openai-chat",
        format: ProviderFormat::Chat,
        base_url: "https://api.openai.com",
        url_variable: Some("OPENAI_BASE_URL"),
        key_variable: Some("OPENAI_API_KEY"),
        model: "gpt-5.6",
        max_tokens: LONG_ANSWER,
        context_tokens: LARGE_CONTEXT,
    },
    KnownProvider {
        name: "ollama",
        format: ProviderFormat::Chat,
        base_url: "http://127.0.0.1:11434",
        url_variable: None,
        key_variable: None,
        model: "gpt-oss:20b",
        max_tokens: SHORT_ANSWER,
        context_tokens: SMALL_CONTEXT,
    },
    KnownProvider {
        name: "llama",
        format: ProviderFormat::Chat,
        base_url: "http://127.0.0.1:8080",
        url_variable: None,
        key_variable: None,
        model: "default",
        max_tokens: SHORT_ANSWER,
        context_tokens: SMALL_CONTEXT,
    },
];

/// What a provider's API speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderFormat {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
}

impl KnownProvider {
    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN_PROVIDERS.iter().find(|known| known.name == name)
    }
}

impl ProviderFormat {
    pub(super) fn of(word: &str) -> Option<Self> {
        match word {
            "anthropic" => Some(Self::Anthropic),
            "chat" => Some(Self::Chat),
            "responses" => Some(Self::Responses),
            _ => None,
        }
    }
}
