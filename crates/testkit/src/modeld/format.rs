//! The three model APIs.

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelApiFormat {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's chat completions, also supported by most local servers.
    ChatCompletions,
    /// OpenAI's responses.
    Responses,
}

impl ModelApiFormat {
    /// All formats.
    pub const ALL: [ModelApiFormat; 3] =
        [ModelApiFormat::Anthropic, ModelApiFormat::ChatCompletions, ModelApiFormat::Responses];

    /// Returns the path of the API.
    pub fn path(self) -> &'static str {
        match self {
            ModelApiFormat::Anthropic => "/v1/messages",
            ModelApiFormat::ChatCompletions => "/v1/chat/completions",
            ModelApiFormat::Responses => "/v1/responses",
        }
    }

    pub(super) fn from_path(path: &str) -> Option<ModelApiFormat> {
        ModelApiFormat::ALL.into_iter().find(|format| format.path() == path)
    }

    /// Returns the name of the request-id header.
    pub(super) fn request_id_header(self) -> &'static str {
        if self == ModelApiFormat::Anthropic { "request-id" } else { "x-request-id" }
    }
}
