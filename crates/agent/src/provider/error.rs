//! How asking a model can fail. Messages are fragments without secrets; what the API said in them is escaped.

use std::time::Duration;

use wharf_net::{BodyError, SendError};

use super::said::Said;

/// Names of the trouble that a conversation has outgrown its model.
const OUTGROWN: [&str; 3] = ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];
/// How those say it who have no name for it, in small letters.
const OUTGROWN_WORDS: [&str; 10] = [
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

/// Why there is no answer, or no whole one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The key has characters that no header can have.
    #[error("the key of the model API cannot be put into a header")]
    BadKey,
    /// A header of the configuration is none.
    #[error("`{0}` is not a header that can be sent to the model API")]
    BadHeader(String),
    /// The request cannot be written, because something in the conversation is no JSON after all.
    #[error("the request cannot be written: {0}")]
    Unwritable(String),
    /// The API was not reached.
    #[error("the model API was not reached")]
    Send(#[source] SendError),
    /// The API wants a key, and there is none.
    #[error("{host} wants a key, and none is set; the usual place is `{variable}`: {said}")]
    KeyMissing {
        /// Whom was asked.
        host: String,
        /// Where the key is usually kept.
        variable: &'static str,
        /// What the API says.
        said: Said,
    },
    /// The API does not take the key.
    #[error("{host} does not take the key it was given; the usual place is `{variable}`: {said}")]
    KeyRefused {
        /// Whom was asked.
        host: String,
        /// Where the key is usually kept.
        variable: &'static str,
        /// What the API says.
        said: Said,
    },
    /// The API does not take the request, or not now.
    #[error("the model API answered {status}: {said}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What the API says.
        said: Said,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The API gave up in the middle of its answer.
    #[error("the model API broke its answer off: {0}")]
    Failed(Said),
    /// What came instead of a stream.
    #[error("the model API answered with something that is no stream of events: {0}")]
    NoStream(Said),
    /// The connection broke in the middle of the answer.
    #[error("the answer of the model could not be read")]
    Body(#[source] BodyError),
    /// The stream ended in the middle of the answer.
    #[error("the answer of the model ended before it was whole")]
    Incomplete,
    /// Nothing came for too long.
    #[error("the model API has said nothing for {} s", .0.as_secs())]
    Silent(Duration),
    /// An event, or the whole answer, is too large.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// Which of them.
        what: &'static str,
        /// How large it may be.
        limit: usize,
    },
    /// An event is not what the format says.
    #[error("the model API sent an event that cannot be read: {0}")]
    Unreadable(String),
}

impl ModelError {
    /// Whether the same request may fare better later.
    pub fn is_retryable(&self) -> bool {
        match self {
            // llama.cpp says so with a 500.
            _ if self.is_outgrown() => false,
            Self::Send(error) => error.may_pass(),
            Self::Refused { status, said, .. } => matches!(status, 429 | 500..=599) && !said.is_about_money(),
            Self::Failed(said) => said.is_overload(),
            Self::Body(BodyError::Broken(_)) | Self::Incomplete | Self::Silent(_) => true,
            _ => false,
        }
    }

    /// Whether somebody has to set a key, or another one.
    pub fn needs_key(&self) -> bool {
        matches!(self, Self::KeyMissing { .. } | Self::KeyRefused { .. } | Self::BadKey)
    }

    /// Whether the conversation has grown too long for the model.
    pub fn is_outgrown(&self) -> bool {
        let said = match self {
            Self::Refused { status: 413, .. } => return true,
            // Who has too much to do speaks of tokens as well, and not of these.
            Self::Refused { status: 429 | 503 | 529, .. } => return false,
            Self::Refused { said, .. } | Self::Failed(said) => said,
            _ => return false,
        };
        let text = said.text.to_lowercase();
        let is_named = said.kind.as_deref().is_some_and(|kind| OUTGROWN.contains(&kind));
        is_named || OUTGROWN_WORDS.iter().any(|words| text.contains(words))
    }

    /// Whether the API may have refused the request for a picture in it. Each says so in its own way, if at all: with any
    /// status that does not mean something else, and where it does (OpenRouter's 404) or there is none, in words.
    pub fn may_mind_pictures(&self) -> bool {
        match self {
            Self::Refused { status: 404, said, .. } | Self::Failed(said) => said.text.to_lowercase().contains("image"),
            Self::Refused { status, .. } => !matches!(status, ..400 | 402 | 408 | 409 | 429 | 502..),
            _ => false,
        }
    }

    /// How long the API wants to be left alone.
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

    use super::super::said::Complaint;
    use super::*;

    fn refused(status: u16, body: &str) -> ModelError {
        let said = Complaint::of_body(body.as_bytes()).told(&Redactor::default());
        ModelError::Refused { status, said, retry_after: None }
    }

    #[test]
    fn outgrown_is_said_in_many_ways() {
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
            assert_eq!(refused(status, &body).is_outgrown(), expected, "{status} {body}");
        }
        assert!(!ModelError::Incomplete.is_outgrown());
    }

    #[test]
    fn a_picture_may_be_what_is_minded() {
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
            assert_eq!(refused(status, body).may_mind_pictures(), expected, "{status} {body}");
        }
        for (text, expected) in [("This model takes no IMAGE input", true), ("the model is down", false)] {
            let said = Said { kind: None, text: text.to_owned() };
            assert_eq!(ModelError::Failed(said).may_mind_pictures(), expected, "{text}");
        }
        assert!(!ModelError::Incomplete.may_mind_pictures());
    }
}
