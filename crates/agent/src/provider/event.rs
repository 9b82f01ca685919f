//! Events of a model response, independent of the API format.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use wharf_json::{JsonLimits, RawJson};
use wharf_spec::Redactor;

use super::api_error::{UnredactedError, redact_and_shorten};
use super::error::ModelError;
use crate::conversation::TurnBlock;

/// Structural limits of one event. The last event of a long response may repeat all of its content.
const EVENT_LIMITS: JsonLimits = JsonLimits { depth: 100, nodes: 200_000 };
/// Maximum characters of a decoding error, which may quote the event.
const MAX_ERROR_CHARS: usize = 200;

/// An event of a response. All strings are untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The API is overloaded or failing, and the request is retried after a delay. Occurs only before a response.
    Waiting {
        /// The delay.
        time: Duration,
        /// The error returned by the API.
        because: ModelError,
    },
    /// A piece of text.
    TextDelta(String),
    /// A piece of the visible reasoning.
    ThinkingDelta(String),
    /// A tool call begins.
    ToolCallBegun {
        /// Index of the call within the response.
        index: usize,
        /// Id that the result must carry.
        id: String,
        /// Name of the tool as in its definition.
        name: String,
    },
    /// A piece of a call's arguments.
    ToolCallDelta {
        /// Index of the call within the response.
        index: usize,
        /// A piece of the JSON text.
        json: String,
    },
    /// A block is complete. Blocks arrive in the order in which they must be sent back.
    BlockDone(TurnBlock),
    /// Token usage. Occurs once per response, if the API reports it.
    Usage {
        /// Input tokens, including cached ones.
        input: u64,
        /// Output tokens.
        output: u64,
        /// Input tokens read from the cache.
        cached: u64,
    },
    /// The response is complete.
    Done {
        /// Reason for the end.
        stop: StopReason,
    },
}

/// Reason for the end of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model finished.
    EndTurn,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// The output token limit or the context window is exhausted.
    MaxTokens,
    /// The model or a content filter refused.
    Refused,
    /// The model paused. It continues when its own response is sent back.
    Paused,
    /// A reason unknown to this client.
    Other(String),
}

/// Decodes the events of one response. Pure: bytes in, events out.
pub(super) trait ResponseDecoder: Send {
    /// Decodes the data of one event of the stream.
    fn decode_event(&mut self, data: &Bytes) -> Result<Vec<ModelEvent>, ResponseFailure>;

    /// Returns the remaining events at the end of the stream. Empty unless the format allows a stream without a final
    /// event.
    fn finish(&mut self) -> Vec<ModelEvent> {
        Vec::new()
    }
}

/// A failure to decode a response. Not redacted: may contain credentials.
#[derive(Debug)]
pub(super) enum ResponseFailure {
    /// The API reports a failure.
    Failed(UnredactedError),
    /// An event does not match the format.
    Unreadable(String),
}

impl ResponseFailure {
    /// Converts the failure to an error without credentials.
    pub fn to_model_error(&self, redactor: &Redactor) -> ModelError {
        match self {
            Self::Failed(complaint) => ModelError::Failed(complaint.redact(redactor)),
            Self::Unreadable(why) => ModelError::Unreadable(redact_and_shorten(why, MAX_ERROR_CHARS, redactor)),
        }
    }
}

/// Decodes the data of one event.
pub(super) fn decode_json<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, ResponseFailure> {
    EVENT_LIMITS.check(data).map_err(|bound| ResponseFailure::Unreadable(bound.to_string()))?;
    serde_json::from_slice(data).map_err(|error| ResponseFailure::Unreadable(error.to_string()))
}

/// Copies a part of an event unchanged.
pub(super) fn copy_raw(part: &RawValue) -> Result<RawJson, ResponseFailure> {
    RawJson::parse(part.get().to_owned()).map_err(|error| ResponseFailure::Unreadable(error.to_string()))
}

/// Token usage so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TokenUsage {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
}

impl TokenUsage {
    pub fn to_event(self) -> ModelEvent {
        let Self { input, output, cached } = self;
        ModelEvent::Usage { input, output, cached }
    }
}

/// Runs the events of a recorded stream through a decoder.
#[cfg(test)]
pub(super) fn replay(mut decoder: impl ResponseDecoder, events: &[&str]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut received = Vec::new();
    for event in events {
        let events = decoder.decode_event(&Bytes::copy_from_slice(event.as_bytes()));
        received.extend(events.map_err(|trouble| trouble.to_model_error(&Redactor::default()))?);
    }
    received.extend(decoder.finish());
    Ok(received)
}
