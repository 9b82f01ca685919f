//! Client for one MCP server: opens a link, negotiates a revision, sends calls, cancels them and closes the link.
//!
//! [`connect`] starts a server under a guard, [`connect_http`] connects over HTTP, and both negotiate. The resulting
//! [`Connection`] is a cheap handle that runs any number of calls concurrently. Each call ends in exactly one outcome
//! within its deadline. Dropping the future of a call cancels the call. Forwarded payloads are not decoded.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod budget;
mod cache;
mod connect;
mod connection;
mod counters;
mod engine;
mod era;
mod error;
mod flow;
mod limits;
mod local;
mod low_priority;
mod notifications;
mod options;
mod process_log;
mod request;
mod server_requests;
mod services;
mod tap;
mod throttle;
mod trace;
mod trace_context;
mod transport;

pub use budget::{BudgetExceeded, BudgetScope, ByteBudget};
pub use cache::{AuthorizationId, ResultCache};
pub use connect::{TransportCache, connect, connect_http, connect_local, connect_to};
pub use connection::{Connection, ServerFacts};
pub use counters::ConnectionCounters;
pub use engine::{RawResult, ResultKind};
pub use error::{CallError, ConnectCause, ConnectError, DisconnectCause, DisconnectReport, TimeoutKind};
pub use flow::{
    Event, Listing, LoadedSkill, SkillContent, SkillError, SkillMismatch, Started, Subscription, TaskHandle,
    TaskOptions, TaskSink, WithheldEntry, skill_labels,
};
pub use limits::Limits;
pub use local::{ClosureServer, ToolCall, ToolReply};
pub use low_priority::LowPriorityThread;
pub use options::{
    CallTag, ConnectOptions, DeclaredClient, InputHandling, InputRound, NegotiationMode, NotificationObserver,
    ProgressSink, RequestOptions, StepSink,
};
pub use process_log::{ProcessLog, ProcessNote};
pub use services::{
    BoxedFuture, ClientServices, Elicitor, LogSink, RequestSource, RootsSource, Sampler, SamplingError,
};
pub use tap::{Direction, Tap, TappedMessage, redact_json};
pub use trace::{ConnectStep, ConnectTrace, StepOutcome};
pub use transport::memory::{ClientSender, HandlerPanic, LocalMessage, LocalServer, ServerEnd, Workers, WorkersHealth};
pub use transport::{ServerProcess, Transport};
pub use wharf_guard as guard;
pub use wharf_guard::{Containment, GuardProgram, ProcessExit, return_large_memory};
/// Authorization of HTTP requests, re-exported from `wharf_net`.
pub use wharf_net::{AuthRecovery, AuthRejection, Authorizer, NotAuthorized, RequestCredentials};
