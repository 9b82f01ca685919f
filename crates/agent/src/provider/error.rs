//! How asking a model can fail. Messages are fragments without secrets; what the API said in them is escaped.

use std::time::Duration;

use wharf_net::{BodyError, SendError};

use super::said::Said;

/// Names of the trouble that a conversation has outgrown its model.
const OUTGROWN: [&str; 3] = ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];

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
        let (Self::Refused { said, .. } | Self::Failed(said)) = self else { return false };
        said.kind.as_deref().is_some_and(|kind| OUTGROWN.contains(&kind)) || said.text.contains("prompt is too long")
    }

    /// How long the API wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
