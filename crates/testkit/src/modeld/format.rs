//! The three model APIs.

use serde::Serialize;

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's chat completions, also supported by most local servers.
    ChatCompletions,
    /// OpenAI's responses.
    Responses,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 3] = [Format::Anthropic, Format::ChatCompletions, Format::Responses];

    /// Returns the path of the API.
    pub fn path(self) -> &'static str {
        match self {
            Format::Anthropic => "/v1/messages",
            Format::ChatCompletions => "/v1/chat/completions",
            Format::Responses => "/v1/responses",
        }
    }

    pub(super) fn at(path: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.path() == path)
    }

    /// Returns the name of the request-id header.
    pub(super) fn request_id_header(self) -> &'static str {
        if self == Format::Anthropic { "request-id" } else { "x-request-id" }
    }
}
