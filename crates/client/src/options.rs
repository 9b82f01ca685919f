//! What a caller may say about a connection and about a call.

use std::sync::Arc;
use std::time::Duration;

use wharf_net::Authorizer;
use wharf_spec::Surroundings;
use wharf_wire::{Progress, Raw};

use crate::cache::{Authorization, Cache};
use crate::connect::Verdicts;
use crate::limits::Limits;
use crate::process_log::ProcessLog;
use crate::services::Services;
use crate::tap::Tap;
use crate::trace::Step;
use wharf_guard::GuardProgram;

/// Takes the progress of one call, in order and ahead of its result.
///
/// Runs on the connection's own task: it must return at once, by handing the value on.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// Hears of each step of connecting as it ends.
pub type StepSink = Arc<dyn Fn(&Step) + Send + Sync>;

/// Hears what a server says unasked. Runs on the connection's own task: it must return at once.
pub trait Observer: Send + Sync {
    /// A notification that belongs to no call.
    fn notification(&self, method: &str, params: Option<&Raw>);
}

/// How to find out which revision a server speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Negotiation {
    /// Ask for the stateless era first, and fall back to the handshake.
    #[default]
    Automatic,
    /// Begin with the handshake: for a server known not to bear the question.
    Handshake,
}

/// How to connect.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// What the server is called here, in errors and logs.
    pub name: String,
    /// The environment and working directory servers are started from.
    pub surroundings: Surroundings,
    /// Bounds and delays.
    pub limits: Limits,
    /// Which program guards the server's processes.
    pub guard: GuardProgram,
    /// How to agree on a revision.
    pub negotiation: Negotiation,
    /// Sees every message.
    pub tap: Option<Arc<dyn Tap>>,
    /// Takes what the server writes to stderr, and when its process begins and ends.
    pub process_log: Option<Arc<dyn ProcessLog>>,
    /// Hears notifications.
    pub observer: Option<Arc<dyn Observer>>,
    /// Hears of each step of connecting as it ends.
    pub on_step: Option<StepSink>,
    /// What is done for the server when it asks.
    pub services: Services,
    /// Where results are kept, if that is to be shared with other connections to the same server.
    pub cache: Option<Arc<Cache>>,
    /// Says who we are to a server that is dialled, unless its own headers or its address do.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// With which authorization the server is spoken to, so that what is private stays apart.
    pub authorization: Authorization,
    /// What servers spoke the last time, if that is to be shared with other connections.
    pub verdicts: Option<Arc<Verdicts>>,
}

/// How to make one call.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// How long to wait for an answer or for progress; the connection's limit when absent.
    pub timeout: Option<Duration>,
    /// How long to wait at most, whatever progress is reported; the connection's limit when absent.
    pub timeout_max: Option<Duration>,
    /// Asks the server for progress, and takes it.
    pub progress: Option<ProgressSink>,
    /// Members added to the request's `_meta`, an object; what the protocol needs there goes first.
    pub meta: Option<Raw>,
    /// Who answers what the server asks before it answers.
    pub inputs: Inputs,
    /// Asks the server even where a fresh result is at hand.
    pub fresh: bool,
}

/// Who answers what a server asks before it answers a call (2026-07-28).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Inputs {
    /// The connection's services; the call goes on by itself.
    #[default]
    Answer,
    /// The caller, who is given the questions: [`crate::ResultKind::InputRequired`] or [`crate::ResultKind::Task`].
    Forward,
}

impl CallOptions {
    /// How long to wait at most.
    pub(crate) fn total(&self, limits: &Limits) -> Duration {
        self.timeout_max.unwrap_or_else(|| limits.call_max.max(self.timeout.unwrap_or(limits.call)))
    }

    /// Waits this long.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Takes progress.
    #[must_use]
    pub fn progress(mut self, sink: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(sink));
        self
    }
}
