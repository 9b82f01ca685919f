//! Errors of requests to a model. Messages are fragments without credentials; text from the API is escaped.

use std::time::Duration;

use wharf_net::{BodyError, SendError};

use super::api_error::ApiErrorMessage;

/// Error kinds for a conversation that exceeds the context window.
const CONTEXT_ERROR_KINDS: [&str; 3] = ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];
/// Lower-case phrases for the same error, for APIs without a specific error kind.
const CONTEXT_ERROR_PHRASES: [&str; 10] = [
    "context length",
    "context limit",
    "context size",
    "context window",
    "input is too long",
    "input token count",
    "length of the messages",
    "maximum allowed input length",
    "maximum prompt length",
    "prompt is too long",
];

/// Error: a request has no response, or an incomplete one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The key contains characters that are invalid in a header.
    #[error("the API key contains characters that are invalid in a header")]
    BadKey,
    /// A configured header is not valid.
    #[error("invalid header for the model API: `{0}`")]
    BadHeader(String),
    /// The request cannot be serialized, because the conversation contains invalid JSON.
    #[error("cannot serialize the request: {0}")]
    Unwritable(String),
    /// The API could not be reached.
    #[error("cannot reach the model API")]
    Send(#[source] SendError),
    /// The API requires a key, and none is configured.
    #[error("{host} requires an API key and none is set (usually in `{variable}`): {message}")]
    KeyMissing {
        /// Host of the API.
        host: String,
        /// Environment variable that usually holds the key.
        variable: &'static str,
        /// Error message of the API.
        message: ApiErrorMessage,
    },
    /// The API rejects the key.
    #[error("{host} rejected the API key (usually set in `{variable}`): {message}")]
    KeyRefused {
        /// Host of the API.
        host: String,
        /// Environment variable that usually holds the key.
        variable: &'static str,
        /// Error message of the API.
        message: ApiErrorMessage,
    },
    /// The API rejects the request, possibly only temporarily.
    #[error("model API returned HTTP {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Error message of the API.
        message: ApiErrorMessage,
        /// Delay after which the API asks to retry.
        retry_after: Option<Duration>,
    },
    /// The API reported a failure during the response.
    #[error("model API failed during the response: {0}")]
    Failed(ApiErrorMessage),
    /// The response is not an event stream.
    #[error("model API did not return an event stream: {0}")]
    NoStream(ApiErrorMessage),
    /// The connection broke during the response.
    #[error("connection to the model API broke during the response")]
    Body(#[source] BodyError),
    /// The stream ended before the response was complete.
    #[error("model response ended prematurely")]
    Incomplete,
    /// The API sent no data within the timeout.
    #[error("no data from the model API for {} s", .0.as_secs())]
    Silent(Duration),
    /// An event, or the whole response, exceeds its size limit.
    #[error("{what} exceeds {limit} bytes")]
    TooLarge {
        /// Describes the oversized part.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// An event does not match the format.
    #[error("model API sent an invalid event: {0}")]
    Unreadable(String),
}

impl ModelError {
    /// Reports whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            // llama.cpp reports a full context with status 500.
            _ if self.exceeds_context() => false,
            Self::Send(error) => error.is_transient(),
            Self::Refused { status, message, .. } => matches!(status, 429 | 500..=599) && !message.is_quota_exhausted(),
            Self::Failed(message) => message.is_overloaded(),
            Self::Body(BodyError::Broken(_)) | Self::Incomplete | Self::Silent(_) => true,
            _ => false,
        }
    }

    /// Reports whether a key has to be set or replaced.
    pub fn needs_key(&self) -> bool {
        matches!(self, Self::KeyMissing { .. } | Self::KeyRefused { .. } | Self::BadKey)
    }

    /// Reports whether the conversation exceeds the model's context window.
    pub fn exceeds_context(&self) -> bool {
        let message = match self {
            Self::Refused { status: 413, .. } => return true,
            // Messages about rate limits and overload also mention tokens and context.
            Self::Refused { status: 429 | 503 | 529, .. } => return false,
            Self::Refused { message, .. } | Self::Failed(message) => message,
            _ => return false,
        };
        let text = message.text.to_lowercase();
        let is_named = message.kind.as_deref().is_some_and(|kind| CONTEXT_ERROR_KINDS.contains(&kind));
        is_named || CONTEXT_ERROR_PHRASES.iter().any(|words| text.contains(words))
    }

    /// Reports whether the API may have rejected the request because of an image. Providers report this differently:
    /// most use an otherwise unspecific status. For status 404 (OpenRouter) and for errors without a status, the text
    /// must mention images.
    pub fn may_reject_images(&self) -> bool {
        match self {
            Self::Refused { status: 404, message, .. } | Self::Failed(message) => {
                message.text.to_lowercase().contains("image")
            }
            Self::Refused { status, .. } => !matches!(status, ..400 | 402 | 408 | 409 | 429 | 502..),
            _ => false,
        }
    }

    /// Returns the delay after which the API asks to retry.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use wharf_spec::Redactor;

    use super::super::api_error::UnredactedError;
    use super::*;

    fn rejection(status: u16, body: &str) -> ModelError {
        let message = UnredactedError::from_body(body.as_bytes()).redact(&Redactor::default());
        ModelError::Refused { status, message, retry_after: None }
    }

    #[test]
    fn context_overflow_errors_are_recognised() {
        let nameless = |text: &str| format!(r#"{{"error":{{"code":400,"message":"{text}"}}}}"#);
        for (status, body, expected) in [
            (413, "<h1>Payload Too Large</h1>".to_owned(), true),
            (413, String::new(), true),
            (400, r#"{"error":{"code":"context_length_exceeded","message":"no"}}"#.to_owned(), true),
            (400, r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"no"}}"#.to_owned(), true),
            (400, nameless("prompt is too long: 213462 tokens > 200000 maximum"), true),
            (400, nameless("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000"), true),
            (400, nameless("This model's maximum context length is 8192 tokens. However, you requested 9000."), true),
            (400, nameless("Your input exceeds the context window of this model."), true),
            (500, nameless("the request exceeds the available context size. try increasing it"), true),
            (400, nameless("The input token count (1196265) exceeds the maximum number of tokens allowed"), true),
            (400, nameless("This model's maximum prompt length is 131072"), true),
            (400, nameless("Please reduce the length of the messages or completion."), true),
            (429, nameless("too many tokens for your context window, wait"), false),
            (503, nameless("no slot with a context size of 8192 is free"), false),
            (400, nameless("max_tokens: 64000 > 8192, the maximum of output tokens for this model"), false),
            (400, String::new(), false),
        ] {
            assert_eq!(rejection(status, &body).exceeds_context(), expected, "{status} {body}");
        }
        assert!(!ModelError::Incomplete.exceeds_context());
    }

    #[test]
    fn possible_image_rejections_are_recognised() {
        let unseen = r#"{"error":{"code":404,"message":"No endpoints found that support image input"}}"#;
        for (status, body, expected) in [
            (400, "", true),
            (422, "", true),
            (500, "", true),
            (404, "", false),
            (404, unseen, true),
            (402, "", false),
            (408, "", false),
            (409, "", false),
            (429, "", false),
            (502, "", false),
            (503, "", false),
            (504, "", false),
            (529, "", false),
        ] {
            assert_eq!(rejection(status, body).may_reject_images(), expected, "{status} {body}");
        }
        for (text, expected) in [("This model takes no IMAGE input", true), ("the model is down", false)] {
            let message = ApiErrorMessage { kind: None, text: text.to_owned() };
            assert_eq!(ModelError::Failed(message).may_reject_images(), expected, "{text}");
        }
        assert!(!ModelError::Incomplete.may_reject_images());
    }
}
