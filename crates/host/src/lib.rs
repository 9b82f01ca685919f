//! An MCP host library: many MCP servers behind one permission gate.
//!
//! A [`Host`] keeps its servers connected and offers their tools through one gate. [`Host::call`] calls a tool by
//! server and name. [`Host::registry`] offers the same tools and others under the names that a model uses.
//! [`Host::catalog`] returns an immutable snapshot of all tools, resources and prompts. [`Host::events`] reports state
//! changes and calls.
//!
//! An embedding program calls [`guard::run_guard_if_requested`] first in `main`, so that no server process outlives it.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod access;
mod account;
mod ask;
mod audit;
mod builder;
mod call;
mod call_history;
mod call_permit;
pub mod catalog;
mod catalog_publisher;
mod context;
mod error;
mod events;
mod gate;
mod host;
mod lister;
mod login;
mod login_lock;
mod logs;
mod management;
mod polling;
mod resource_subscriptions;
mod results;
mod routing;
mod section_publishing;
mod server;
mod server_error;
mod server_set;
mod services;
mod state_directory;
mod stats;
mod status;
mod supervise;
mod tool;
mod uri_template;
mod usage;

pub use account::ServerAccount;
pub use ask::{
    ApprovalAsk, Ask, AskReply, Asker, ConsentAnswer, ElicitationAsk, LoginAsk, PageAsk, PermissionAnswer,
    PermissionAsk, SamplingAsk,
};
pub use builder::{HostBuilder, StartError};
pub use call::{CallOptions, ToolResponse};
pub use call_history::{PastCalls, PastToolCalls, past_calls};
pub use call_permit::CallPermit;
pub use error::HostError;
pub use events::{Event, EventDelivery, EventReceiver, Told};
pub use gate::{PromptPolicy, RuleSink};
pub use host::Host;
pub use lister::ListingMode;
pub use logs::{LogLine, LogSource, ServerLogs, log_file_name};
pub use results::ResultLimits;
pub use server::LocalFactory;
pub use server_error::ServerError;
pub use server_set::ServerSetChanges;
pub use stats::ToolStats;
pub use status::{ConnectedStatus, OfferStatus, ServerStatus};
pub use supervise::ServerState;

/// Logins to servers.
pub use wharf_auth as auth;
/// Supervision of server processes.
pub use wharf_client::guard;
/// Other types of the host's public interface.
pub use wharf_client::{
    AuthRecovery, Authorizer, BudgetExceeded, BudgetScope, ByteBudget, CallError, ClientServices, ClosureServer,
    ConnectCause, ConnectError, ConnectOptions, Connection, Direction, GuardProgram, InputHandling, Limits,
    LocalServer, NotAuthorized, ProcessLog, ProcessNote, RawResult, ResultKind, SamplingError, Tap, TappedMessage,
    ToolCall, ToolReply, return_large_memory,
};
/// Finds instructions to the model and hidden text in what servers define.
pub use wharf_inspect as inspect;
pub use wharf_json::RawJson;
pub use wharf_policy as policy;
pub use wharf_spec as spec;
pub use wharf_tools as tools;
pub use wharf_wire as wire;
