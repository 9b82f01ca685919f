//! The `Tool` trait and its call parameters.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use wharf_json::RawJson;

use crate::{PersonTime, ToolDescription, ToolError, ToolOutcome};

/// A boxed future, as returned by the object-safe traits.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A tool that can be called by name.
pub trait Tool: Send + Sync {
    /// Returns the tool's metadata. Must stay constant: a changed tool is registered as a new value.
    fn description(&self) -> &Arc<ToolDescription>;

    /// Reports whether the tool is offered to models at present. A tool that is not offered can be called. The owner of
    /// the tool calls [`Registry::republish`](crate::Registry::republish) when this changes.
    fn is_offered(&self) -> bool {
        true
    }

    /// Executes a call that has passed the gate. Only a registry calls this method.
    ///
    /// A tool that reports failure returns a [`ToolOutcome`] marked as error, not an `Err`. Dropping the future
    /// cancels the call.
    fn call(&self, call: ToolInvocation) -> BoxFuture<'_, Result<ToolOutcome, ToolError>>;
}

/// One call of a tool.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolInvocation {
    /// The arguments: a JSON object, forwarded unchanged.
    pub arguments: RawJson,
    /// The caller.
    pub caller: ToolCaller,
    /// Receives progress updates. `None` requests none.
    pub progress: Option<ProgressSink>,
    /// Timeout; `None` uses the tool's own limit. Enforced by the tool, which may apply it to its own waits and then
    /// again to the execution. Time spent waiting for permission does not count.
    pub timeout: Option<Duration>,
    /// Metadata sent next to the arguments, for example the trace context.
    pub meta: Option<RawJson>,
    /// Collects the time the call waits for a person: at the gate, and for questions of the tool.
    pub person_time: PersonTime,
}

/// Identity of a caller, and whether the call itself expresses a person's consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCaller {
    /// Display name of the caller, for prompts and logs.
    pub name: Arc<str>,
    /// Behaviour when the rules require asking a person.
    pub consent: CallerConsent,
    /// The person or program on whose behalf it calls.
    pub principal: Principal,
    /// A number that the caller gives the request it acts for, to recognise it in questions to the principal.
    pub request: Option<u64>,
    /// Name of further rules that apply to the caller's calls. Without such rules at the gate, they are denied.
    pub rule_set: Option<Arc<str>>,
}

/// The person or program on whose behalf a call is made. An answer to a prompt holds for one principal only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Principal(Option<Arc<str>>);

/// Behaviour when the rules require asking a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerConsent {
    /// Ask the person.
    Ask,
    /// The person typed the call and thereby consents. Deny rules still apply.
    Given,
}

/// Receives the progress updates of one call, in order and before its outcome. Must not block.
pub type ProgressSink = Arc<dyn Fn(CallProgress) + Send + Sync>;

/// A progress update of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallProgress {
    /// Amount of work done. Increases from update to update.
    pub done: f64,
    /// Total amount of work, if the tool knows it.
    pub total: Option<f64>,
    /// Status message of the tool: untrusted text.
    pub message: Option<String>,
}

impl ToolInvocation {
    /// Creates a call without progress, timeout or metadata.
    pub fn new(arguments: RawJson, caller: ToolCaller) -> Self {
        Self { arguments, caller, progress: None, timeout: None, meta: None, person_time: PersonTime::default() }
    }
}

impl ToolCaller {
    /// An agent that calls on its own: a person is asked if the rules require it.
    pub fn agent() -> Self {
        let (consent, principal) = (CallerConsent::Ask, Principal::local());
        Self { name: "agent".into(), consent, principal, request: None, rule_set: None }
    }

    /// A person typing the call.
    pub fn person() -> Self {
        Self { name: "person".into(), consent: CallerConsent::Given, ..Self::agent() }
    }

    /// Sets the principal.
    #[must_use]
    pub fn on_behalf_of(self, principal: Principal) -> Self {
        Self { principal, ..self }
    }

    /// Sets the number of the request.
    #[must_use]
    pub fn for_request(self, number: u64) -> Self {
        Self { request: Some(number), ..self }
    }
}

impl Principal {
    /// The user who runs this program.
    pub fn local() -> Self {
        Self(None)
    }

    /// A client with this identifier, for example of a key or of a session.
    pub fn client(id: impl Into<Arc<str>>) -> Self {
        Self(Some(id.into()))
    }

    /// Reports whether this is the user who runs this program.
    pub fn is_local(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the identifier of a client.
    pub fn client_id(&self) -> Option<&str> {
        self.0.as_deref()
    }
}
