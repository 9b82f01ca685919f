//! What a model says, piece by piece, whatever its API calls it.

use bytes::Bytes;
use serde::Deserialize;
use wharf_json::Bounds;

use super::error::ModelError;
use crate::conversation::Block;

/// How much structure one event may have. The last one of a long answer may hold all of it again.
const BOUNDS: Bounds = Bounds { depth: 100, nodes: 200_000 };

/// One piece of an answer. Every string is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// More text.
    TextDelta(String),
    /// More of what the model thinks, as far as it is shown.
    ThinkingDelta(String),
    /// The model begins to write a call.
    ToolCallBegun {
        /// Tells the calls of one answer apart.
        index: usize,
        /// What its result has to be marked with.
        id: String,
        /// The tool, by the name it was defined with.
        name: String,
    },
    /// More of the arguments of a call.
    ToolCallDelta {
        /// Which call.
        index: usize,
        /// A piece of JSON text.
        json: String,
    },
    /// A block is whole. The blocks of an answer come in the order in which they have to be sent back.
    BlockDone(Block),
    /// What was counted, once per answer where the API says so.
    Usage {
        /// Tokens that were read, those of the cache included.
        input: u64,
        /// Tokens that were written.
        output: u64,
        /// Tokens that were read from a cache.
        cached: u64,
    },
    /// The answer is whole.
    Done {
        /// Why it ended.
        stop: Stop,
    },
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The model is done.
    EndTurn,
    /// It waits for the results of its calls.
    ToolCalls,
    /// There was no room for more.
    MaxTokens,
    /// It, or somebody in between, did not want to.
    Refused,
    /// It wants to be sent its own answer back, and goes on.
    Paused,
    /// For a reason unknown here.
    Other(String),
}

/// Reads the events of one answer. Pure: bytes in, events out.
pub(super) trait Decode: Send {
    /// Takes the data of one event of the stream.
    fn event(&mut self, data: &Bytes) -> Result<Vec<ModelEvent>, ModelError>;

    /// Gives what is left when the stream has ended: nothing, unless the format has no last word of its own.
    fn ended(&mut self) -> Vec<ModelEvent> {
        Vec::new()
    }
}

/// Reads the data of one event.
pub(super) fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, ModelError> {
    BOUNDS.check(data).map_err(|bound| ModelError::Unreadable(bound.to_string()))?;
    serde_json::from_slice(data).map_err(|error| ModelError::Unreadable(error.to_string()))
}

/// What was counted so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
}

impl Counted {
    pub fn event(self) -> ModelEvent {
        let Self { input, output, cached } = self;
        ModelEvent::Usage { input, output, cached }
    }
}

/// Runs the events of a recorded stream through a decoder.
#[cfg(test)]
pub(super) fn replay(mut decoder: impl Decode, events: &[&str]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut told = Vec::new();
    for event in events {
        told.extend(decoder.event(&Bytes::copy_from_slice(event.as_bytes()))?);
    }
    told.extend(decoder.ended());
    Ok(told)
}
