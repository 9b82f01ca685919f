//! The agent's state machine.
//!
//! A [`RunMachine`] consumes inputs and returns effects. It has no clock and does no I/O, so tests can try every order of
//! inputs. The [agent](crate::agent) executes the effects. The conversation is well-formed at every end, so any model
//! can continue it.

mod call_ids;
mod call_report;
mod call_round;
mod context_window;
mod loop_detector;
mod machine;
mod note_blocks;
mod partial_response;
mod requested_call;

use std::time::Duration;

use wharf_json::RawJson;
use wharf_tools::CallProgress;

use crate::conversation::{ConversationTurn, ResultBlock};
use crate::provider::ModelError;

pub(crate) use call_report::report_from_outcome;
pub(crate) use machine::{RequestInputs, RunEffect, RunInput, RunMachine};

/// An event of a run, for observers. Texts come from models and tools: untrusted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunEvent {
    /// A request is sent to the model.
    RequestSent {
        /// Number of the request in this run, starting at 1.
        request: u32,
    },
    /// The model's API is overloaded or failing. The request is retried after a delay.
    Waiting {
        /// The delay.
        time: Duration,
        /// The error returned by the API.
        because: ModelError,
    },
    /// A piece of the model's text.
    Text(String),
    /// A piece of the model's reasoning.
    Thinking(String),
    /// A tool call starts. A permission prompt, if needed, follows this event.
    CallBegun {
        /// Identifies the call within the run.
        id: String,
        /// The tool's name in the registry.
        tool: String,
        /// The arguments.
        arguments: RawJson,
    },
    /// A progress update of a tool call.
    CallProgress {
        /// Id of the call.
        id: String,
        /// The progress update.
        progress: CallProgress,
    },
    /// A tool call has ended.
    CallEnded {
        /// Id of the call.
        id: String,
        /// Result of the call.
        report: CallReport,
    },
    /// A note is added to the next request.
    Noted {
        /// Source of the note.
        from: String,
        /// Text of the note.
        text: String,
    },
    /// Token usage of the model's last response.
    Usage {
        /// Input tokens, including cached ones.
        input: u64,
        /// Output tokens.
        output: u64,
        /// Input tokens read from the cache.
        cached: u64,
    },
    /// Usage of sub-agents since the previous event of this kind. Their requests are part of the run's budget.
    Delegated {
        /// Requests to the model.
        requests: u32,
        /// Input tokens, including cached ones.
        input: u64,
        /// Output tokens.
        output: u64,
        /// Input tokens read from the cache.
        cached: u64,
    },
    /// The oldest content was removed from the conversation to fit the context window.
    Shortened {
        /// Number of tool results and relayed texts that were truncated or removed.
        results: usize,
        /// Number of model turns that were removed.
        answers: usize,
    },
    /// The API rejected the conversation, possibly because of its images. The request is retried without them. The
    /// images stay removed if the retry succeeds, and are restored at the end of the run otherwise.
    ImagesRemoved {
        /// Number of images removed.
        images: usize,
    },
    /// A call was refused because it repeats earlier calls with the same results.
    Repeated {
        /// The tool.
        tool: String,
        /// Number of times it was made.
        times: u32,
    },
    /// A turn was added to the conversation, for observers that save it.
    Turn(ConversationTurn),
    /// The run is over. Always the last event.
    Ended(RunEnding),
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallReport {
    /// Content sent to the model.
    pub content: Vec<ResultBlock>,
    /// Marks the content as an error.
    pub is_error: bool,
    /// Duration of the call, without the time spent waiting for a person.
    pub duration: Duration,
    /// A person refused the call at a permission prompt. It was not executed.
    pub is_refused: bool,
}

/// Reason for the end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunEnding {
    /// The model finished.
    Done,
    /// The caller cancelled the run.
    Cancelled,
    /// The model or a content filter refused.
    Refused,
    /// The response reached the output token limit.
    TooLong,
    /// The model repeated the same calls although they were refused.
    Looping,
    /// The request limit was reached.
    OutOfRequests,
    /// The request to the model failed.
    Failed(ModelError),
}

impl CallReport {
    /// Creates the report of a finished call. The driver, which has the clock, fills in the duration.
    pub(crate) fn new(content: Vec<ResultBlock>, is_error: bool) -> Self {
        Self { content, is_error, duration: Duration::ZERO, is_refused: false }
    }

    /// Creates an error report with a text.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::new(vec![ResultBlock::Text(text.into())], true)
    }
}
