//! The trait a tool implements, and what it is called with.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use wharf_json::Raw;

use crate::{Description, Outcome, ToolError};

/// A future on the heap, as traits that are used as objects return it.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that can be called by name, whoever provides it.
pub trait Tool: Send + Sync {
    /// What is known of it. Stays the same: a tool that changes is another one, registered in its place.
    fn description(&self) -> &Arc<Description>;

    /// Carries out a call that has passed the gate; only a registry calls this.
    ///
    /// A tool that reports failure has answered: that is an [`Outcome`] with its error mark. Dropping the future
    /// withdraws the call.
    fn call(&self, call: Call) -> Pending<'_, Result<Outcome, ToolError>>;
}

/// One call of a tool.
#[derive(Clone)]
#[non_exhaustive]
pub struct Call {
    /// The arguments: a JSON object, passed on as it is.
    pub arguments: Raw,
    /// Who calls.
    pub caller: Caller,
    /// Asks for progress, and takes it.
    pub progress: Option<ProgressSink>,
    /// How long the tool may take; its own limit when absent. The tool keeps it, since only the tool knows when it
    /// begins: neither waiting for a person nor waiting for a turn counts.
    pub timeout: Option<Duration>,
    /// What travels along beside the arguments, for instance the trace the call belongs to.
    pub meta: Option<Raw>,
}

/// Who calls, and whether the call itself is a person's consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// What to call the caller where the call is shown or written down.
    pub name: Arc<str>,
    /// Whether a person is to be asked.
    pub consent: Consent,
}

/// What is done where the rules say that a person is to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// The person is asked.
    Ask,
    /// The call was typed by the person who would be asked. What is denied stays denied.
    Given,
}

/// Takes the progress of one call, in order and ahead of its outcome. It must return at once, by handing the value on.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// How far a call has got.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How much is done; grows from one to the next.
    pub done: f64,
    /// How much there is, where the tool knows.
    pub total: Option<f64>,
    /// What the tool is doing: untrusted text.
    pub message: Option<String>,
}

impl Call {
    /// A call with these arguments, on whose behalf it is made, and nothing else said.
    pub fn new(arguments: Raw, caller: Caller) -> Self {
        Self { arguments, caller, progress: None, timeout: None, meta: None }
    }
}

impl Caller {
    /// A model that calls by itself: a person is asked where the rules say so.
    pub fn agent() -> Self {
        Self { name: "agent".into(), consent: Consent::Ask }
    }

    /// A person who typed the call.
    pub fn person() -> Self {
        Self { name: "person".into(), consent: Consent::Given }
    }
}
