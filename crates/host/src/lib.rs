//! An MCP host library: connects a program to many MCP servers and puts their tools behind one permission gate.
//!
//! A [`Host`] is the handle that your program holds for its MCP servers. It starts local servers as child processes or
//! connects to remote ones over HTTP, restarts and reconnects them, and merges their tools into one catalog. Every tool
//! call passes a permission gate first: rules, your own code or a person decide. A host is cheap to clone, works on any
//! Tokio runtime with time and I/O enabled, prints nothing, and reads neither the environment nor a home directory.
//!
//! | to | use |
//! |---|---|
//! | configure and start a host | [`Host::builder`], [`HostBuilder::start`] |
//! | call a tool | [`Host::call`] by [`ToolId`](spec::ToolId); [`Host::registry`] by the name a model uses |
//! | see the tools, resources and prompts | [`Host::catalog`], an immutable snapshot |
//! | ask a person for permission | an [`Asker`], set with [`HostBuilder::asker`] |
//! | follow states, calls and logs | [`Host::events`], [`Host::status`] |
//! | change the servers at run time | [`Host::set_servers`], [`Host::enable`], [`Host::disable`] |
//! | stop everything | [`Host::close`] |
//!
//! Each server process has a guard, which ends the server even if your program is killed. The guard is your program,
//! executed again: it becomes a guard before `main`, so no call is needed, and `#[tokio::main]`, a plain `main` and
//! `#[tokio::test]` all work. A program that loads this library from a shared object names another program with
//! [`HostBuilder::guard`]; without one, starting a server fails with an error that says so.
//!
//! # Example
//!
//! A host with one in-process server, a rule that allows its tool, and one call:
//!
//! ```
//! use serde_json::json;
//! use wharf::policy::Rule;
//! use wharf::spec::ServerName;
//! use wharf::{CallOptions, ClosureServer, Host, RawJson, ToolCall, ToolReply};
//!
//! fn greeter() -> ClosureServer {
//!     let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
//!     ClosureServer::new("greeter", "1.0").tool("greet", "Greets a person.", schema, greet)
//! }
//!
//! async fn greet(call: ToolCall) -> Result<ToolReply, String> {
//!     let arguments: serde_json::Value = call.decode()?;
//!     Ok(ToolReply::text(format!("Hello, {}!", arguments["name"].as_str().unwrap_or("stranger"))))
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let host = Host::builder()
//!         .local(ServerName::new("greeter")?, greeter)
//!         .rules([Rule::allow("mcp__greeter__*")])
//!         .start()
//!         .await?;
//!     host.wait_until_settled().await;
//!
//!     let greet = host.resolve("mcp__greeter__greet")?;
//!     let response = host.call(&greet, &RawJson::parse(r#"{"name":"Ada"}"#)?, CallOptions::default()).await?;
//!     assert_eq!(response.text()?, "Hello, Ada!");
//!
//!     host.close().await;
//!     Ok(())
//! }
//! ```
//!
//! [`ConfigFile::load`] reads the servers and rules of an `mcp.json`.
//!
//! Larger examples are in `crates/host/examples`: `embed.rs` (a server process), `in_process.rs`, `asker.rs` (prompts)
//! and `watch.rs` (events).

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
mod config_file;
mod context;
mod definition_review;
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
mod resource_watch;
mod results;
mod routing;
mod section_publishing;
mod server;
mod server_error;
mod server_set;
mod services;
mod startup;
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
pub use audit::{AuditMode, AuditSink};
pub use builder::{HostBuilder, StartError};
pub use call::{CallOptions, ToolResponse};
pub use call_history::{PastCalls, PastToolCalls, past_calls};
pub use call_permit::CallPermit;
pub use config_file::{ConfigFile, rules_from_config};
pub use definition_review::{ChangedDefinition, Remedy, RemedyText};
pub use error::HostError;
pub use events::{Event, EventDelivery, EventReceiver, TimedEvent};
pub use gate::{AskFilter, AskPolicy, RuleSink};
pub use host::Host;
pub use lister::ListingMode;
pub use logs::{LogLine, LogSource, ServerLogs, log_file_name};
pub use resource_watch::ResourceWatch;
pub use results::ResultLimits;
pub use server::LocalFactory;
pub use server_error::ServerError;
pub use server_set::{LocalEntry, ServerSetChanges};
pub use stats::ToolStats;
pub use status::{ConnectedStatus, OfferStatus, ServerStatus};
pub use supervise::ServerState;

/// Logins to servers.
pub use wharf_auth as auth;
/// Supervision of server processes.
pub use wharf_client::guard;
// Other types of the public interface.
pub use wharf_client::{
    AuthRecovery, AuthRejection, Authorizer, BudgetExceeded, BudgetScope, ByteBudget, CallError, CallTag,
    ClientServices, ClosureServer, ConnectCause, ConnectError, ConnectOptions, ConnectTrace, Connection,
    ConnectionCounters, DeclaredClient, Direction, DisconnectReport, Elicitor, InputHandling, InputRound, Limits,
    LocalServer, LogSink, NegotiationMode, NotAuthorized, ProcessLog, ProcessNote, ProgressSink, RawResult,
    RequestCredentials, RequestOptions, RequestSource, ResultKind, RootsSource, Sampler, SamplingError, ServerEnd,
    ServerFacts, Started, Tap, TappedMessage, TaskHandle, TaskOptions, TimeoutKind, ToolCall, ToolReply, Transport,
    WithheldEntry, Workers,
};
/// Configuration files.
pub use wharf_config as config;
/// Finds instructions to the model and hidden text in what servers define.
pub use wharf_inspect as inspect;
pub use wharf_json::RawJson;
pub use wharf_policy as policy;
pub use wharf_spec as spec;
pub use wharf_tools as tools;
pub use wharf_wire as wire;
