//! Which of the three APIs a request is for.

use serde::Serialize;

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's chat completions, which most local servers speak too.
    ChatCompletions,
    /// OpenAI's responses.
    Responses,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 3] = [Format::Anthropic, Format::ChatCompletions, Format::Responses];

    /// Names the path at which it is served.
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

    /// The header by which its answers are numbered.
    pub(super) fn request_id_header(self) -> &'static str {
        if self == Format::Anthropic { "request-id" } else { "x-request-id" }
    }
}
