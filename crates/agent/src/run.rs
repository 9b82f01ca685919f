//! What an agent does when: a state machine, pure.
//!
//! A [`Machine`] takes what happened and says what to do about it. It has no clock and touches nothing, so that every
//! order of events can be tried; the [agent](crate::agent) carries out what it says. It keeps the conversation whole
//! at every end, however sudden: what it gives back can be gone on with by any model.

mod answer;
mod ids;
mod machine;
mod noted;
mod repeats;
mod results;
mod room;
mod round;
mod wanted;

use std::time::Duration;

use wharf_json::Raw;
use wharf_tools::Progress;

use crate::conversation::{ResultBlock, Turn};
use crate::provider::ModelError;

pub(crate) use machine::{Effect, Event, Gathered, Machine};
pub(crate) use results::report;

/// What happens in a run, for whoever watches. Texts are a model's or a tool's: untrusted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunEvent {
    /// The model is being asked, for this many-th time in the run.
    Asking {
        /// Counted from one.
        request: u32,
    },
    /// The model's API has too much to do, or is not well; it is asked again after a while.
    Waiting {
        /// How long that is.
        time: Duration,
        /// What the API said.
        because: ModelError,
    },
    /// More text of the model's answer.
    Text(String),
    /// More of what the model thinks.
    Thinking(String),
    /// A tool is being called. Asking a person, where that is needed, comes after this.
    CallBegun {
        /// Tells the calls of a run apart.
        id: String,
        /// The tool's name in the registry.
        tool: String,
        /// With what.
        arguments: Raw,
    },
    /// A call has got on.
    CallProgress {
        /// Which call.
        id: String,
        /// How far it is.
        progress: Progress,
    },
    /// A call has ended.
    CallEnded {
        /// Which call.
        id: String,
        /// How.
        report: CallReport,
    },
    /// The model is told something before its next request.
    Noted {
        /// Whom it is from.
        from: String,
        /// What.
        text: String,
    },
    /// What the model's last answer cost.
    Usage {
        /// Tokens that were read, those of the cache included.
        input: u64,
        /// Tokens that were written.
        output: u64,
        /// Tokens that were read from a cache.
        cached: u64,
    },
    /// What the sub-agents have cost since this was last told. It counts against the requests of the run.
    Delegated {
        /// Requests to the model.
        requests: u32,
        /// Tokens that were read, those of the cache included.
        input: u64,
        /// Tokens that were written.
        output: u64,
        /// Tokens that were read from a cache.
        cached: u64,
    },
    /// The oldest was taken out of the conversation to make room.
    Shortened {
        /// How many results of tools, and words of servers, were shortened or left out.
        results: usize,
        /// How many answers of the model were left out.
        answers: usize,
    },
    /// The API did not take the conversation while there were pictures in it. It is asked once more without them; they
    /// stay out if it answers, and are back at the end of the run if it does not.
    PicturesLeftOut {
        /// How many.
        pictures: usize,
    },
    /// The same call came again and again without anything new, and was not carried out.
    Repeated {
        /// The tool.
        tool: String,
        /// How often it was made.
        times: u32,
    },
    /// A turn is part of the conversation from now on: for whoever saves it.
    Turn(Turn),
    /// The run is over. Always the last one.
    Ended(Ending),
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallReport {
    /// What the model is given.
    pub content: Vec<ResultBlock>,
    /// Whether that is an error.
    pub is_error: bool,
    /// How long it took, a person's thinking included.
    pub duration: Duration,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The model is done.
    Done,
    /// Somebody cancelled it.
    Cancelled,
    /// The model, or somebody in between, did not want to.
    Refused,
    /// The answer is longer than it may be.
    TooLong,
    /// The model made the same call over and over, and went on when it was told.
    Looping,
    /// There were as many requests as there may be.
    OutOfRequests,
    /// The model could not be asked.
    Failed(ModelError),
}

impl CallReport {
    /// The report of a call that has just ended; how long it took is put in by whoever has a clock.
    pub(crate) fn new(content: Vec<ResultBlock>, is_error: bool) -> Self {
        Self { content, is_error, duration: Duration::ZERO }
    }

    /// The report of a call that failed in these words.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::new(vec![ResultBlock::Text(text.into())], true)
    }
}
