//! Options of a connection and of a call.

use std::sync::Arc;
use std::time::Duration;

use wharf_net::Authorizer;
use wharf_spec::Environment;
use wharf_wire::{LogLevel, Progress, RawJson};

use crate::cache::{AuthorizationId, ResultCache};
use crate::connect::TransportCache;
use crate::error::CallError;
use crate::limits::Limits;
use crate::process_log::ProcessLog;
use crate::services::ClientServices;
use crate::tap::Tap;
use crate::trace::ConnectStep;
use wharf_guard::GuardProgram;

/// Receives the progress of one call, in order and before its result.
///
/// Called on the connection's own task: it must return at once, by passing the value on.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// Receives each step of connecting when it ends.
pub type StepSink = Arc<dyn Fn(&ConnectStep) + Send + Sync>;

/// Receives notifications from the server. Called on the connection's own task: it must return at once.
pub trait NotificationObserver: Send + Sync {
    /// Handles a notification that belongs to no call.
    fn notification(&self, method: &str, params: Option<&RawJson>);
}

/// The way to determine the revision of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NegotiationMode {
    /// Probe for the stateless era first and fall back to the handshake.
    #[default]
    Automatic,
    /// Start with the handshake, for a server known not to tolerate the probe.
    Handshake,
}

/// Options of a connection.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Name of the server in errors and logs.
    pub name: String,
    /// The environment and working directory in which servers are started.
    pub surroundings: Environment,
    /// Bounds and timeouts.
    pub limits: Limits,
    /// The program that guards the server's processes.
    pub guard: GuardProgram,
    /// The way to negotiate a revision.
    pub negotiation: NegotiationMode,
    /// Receives every message.
    pub tap: Option<Arc<dyn Tap>>,
    /// Receives stderr lines and the start and end of the process.
    pub process_log: Option<Arc<dyn ProcessLog>>,
    /// Receives notifications.
    pub observer: Option<Arc<dyn NotificationObserver>>,
    /// Receives each step of connecting when it ends.
    pub on_step: Option<StepSink>,
    /// Handlers for requests from the server.
    pub services: ClientServices,
    /// Cache of results, if shared with other connections to the same server.
    pub cache: Option<Arc<ResultCache>>,
    /// Provides credentials for an HTTP server, unless its own headers or its address contain them.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// Identifies the authorization in use, which separates private cached results.
    pub authorization: AuthorizationId,
    /// Cache of detected transports, if shared with other connections.
    pub transport_cache: Option<Arc<TransportCache>>,
}

/// Options of one request on a connection: timeouts, progress and metadata.
///
/// A call through a host has a caller as well, so the host has its own `CallOptions`, which contain these.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// Timeout without a response or progress. Defaults to the connection's limit.
    pub timeout: Option<Duration>,
    /// Timeout regardless of progress. Defaults to the connection's limit.
    pub timeout_max: Option<Duration>,
    /// Requests progress from the server and receives it.
    pub progress: Option<ProgressSink>,
    /// Members added to the request's `_meta`, an object. Members required by the protocol come first.
    pub meta: Option<RawJson>,
    /// Handling of input requests during the call.
    pub inputs: InputHandling,
    /// Bypasses the cache when reading.
    pub fresh: bool,
    /// Identifies the call in requests and log messages that the server sends because of it.
    pub tag: Option<CallTag>,
    /// Responses to the input requests of an earlier attempt at the same call (2026-07-28).
    pub input_round: Option<InputRound>,
    /// The client to declare instead of this one (2026-07-28), for a caller that forwards calls of another client.
    pub client: Option<Arc<DeclaredClient>>,
}

/// A number that a caller gives a call, to recognise it in requests of the server. It is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallTag(pub u64);

/// The members that repeat a call with the responses to its input requests (2026-07-28, basic/patterns/mrtr).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputRound {
    /// `inputResponses`: an object with one response per input request.
    pub responses: Option<RawJson>,
    /// `requestState`: the string that the server sent with its input requests.
    pub state: Option<RawJson>,
}

/// A client as declared to a server in the `_meta` of a request (2026-07-28).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeclaredClient {
    /// `clientCapabilities`, an object. Empty if unset.
    pub capabilities: Option<RawJson>,
    /// `clientInfo`, an object. This client's own if unset.
    pub info: Option<RawJson>,
    /// `logLevel`. No log messages if unset.
    pub log_level: Option<LogLevel>,
}

impl InputRound {
    /// Returns the members of the request, each after a comma.
    pub(crate) fn members(&self) -> Result<String, CallError> {
        let mut members = String::new();
        for (name, value, is_valid) in [
            ("inputResponses", &self.responses, (|value| value.is_object()) as fn(&RawJson) -> bool),
            ("requestState", &self.state, |value| value.as_str().trim_start().starts_with('"')),
        ] {
            let Some(value) = value else { continue };
            if !is_valid(value) {
                return Err(CallError::Invalid(format!("`{name}` has the wrong type")));
            }
            members.push_str(",\"");
            members.push_str(name);
            members.push_str("\":");
            members.push_str(value.as_str());
        }
        Ok(members)
    }
}

impl DeclaredClient {
    /// Sets the capabilities.
    #[must_use]
    pub fn capabilities(mut self, capabilities: RawJson) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Sets the client's name and version.
    #[must_use]
    pub fn info(mut self, info: RawJson) -> Self {
        self.info = Some(info);
        self
    }

    /// Sets the minimum level of log messages.
    #[must_use]
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
        self
    }
}

/// Handling of input that a server requests before it returns a result (2026-07-28).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputHandling {
    /// The connection's services answer, and the call continues.
    #[default]
    Answer,
    /// The caller gets the requests: [`crate::ResultKind::InputRequired`] or [`crate::ResultKind::Task`].
    Forward,
}

impl RequestOptions {
    /// Returns the timeout of the call regardless of progress.
    pub(crate) fn total_timeout(&self, limits: &Limits) -> Duration {
        self.timeout_max.unwrap_or_else(|| limits.call_total_timeout.max(self.timeout.unwrap_or(limits.call_timeout)))
    }

    /// Sets the timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the tag.
    #[must_use]
    pub fn tag(mut self, tag: CallTag) -> Self {
        self.tag = Some(tag);
        self
    }

    /// Sets the progress sink.
    #[must_use]
    pub fn progress(mut self, sink: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(sink));
        self
    }
}
