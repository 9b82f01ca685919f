//! What a model says, piece by piece, whatever its API calls it.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use wharf_json::{Bounds, Raw};
use wharf_spec::Redactor;

use super::error::ModelError;
use super::said::{Complaint, shown};
use crate::conversation::Block;

/// How much structure one event may have. The last one of a long answer may hold all of it again.
const BOUNDS: Bounds = Bounds { depth: 100, nodes: 200_000 };
/// The most characters of why an event cannot be read, which may be said in its own words.
const LONGEST_WHY: usize = 200;

/// One piece of an answer. Every string is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The API has too much to do, or is not well, and is asked again after a while. Comes before an answer, never in one.
    Waiting {
        /// How long that is.
        time: Duration,
        /// What the API said.
        because: ModelError,
    },
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
    fn event(&mut self, data: &Bytes) -> Result<Vec<ModelEvent>, Trouble>;

    /// Gives what is left when the stream has ended: nothing, unless the format has no last word of its own.
    fn ended(&mut self) -> Vec<ModelEvent> {
        Vec::new()
    }
}

/// Why an answer cannot be read on, as the API has it: anything may be in it.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The API says that it gives up.
    Failed(Complaint),
    /// An event is not what the format says.
    Unreadable(String),
}

impl Trouble {
    /// What can be told of it.
    pub fn told(&self, redactor: &Redactor) -> ModelError {
        match self {
            Self::Failed(complaint) => ModelError::Failed(complaint.told(redactor)),
            Self::Unreadable(why) => ModelError::Unreadable(shown(why, LONGEST_WHY, redactor)),
        }
    }
}

/// Reads the data of one event.
pub(super) fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, Trouble> {
    BOUNDS.check(data).map_err(|bound| Trouble::Unreadable(bound.to_string()))?;
    serde_json::from_slice(data).map_err(|error| Trouble::Unreadable(error.to_string()))
}

/// Keeps a part of an event as it came.
pub(super) fn carried(part: &RawValue) -> Result<Raw, Trouble> {
    Raw::parse(part.get().to_owned()).map_err(|error| Trouble::Unreadable(error.to_string()))
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
        let events = decoder.event(&Bytes::copy_from_slice(event.as_bytes()));
        told.extend(events.map_err(|trouble| trouble.told(&Redactor::default()))?);
    }
    told.extend(decoder.ended());
    Ok(told)
}
