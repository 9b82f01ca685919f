//! Many MCP clients on one host.
//!
//! A [`Gateway`] serves everything a [`Host`](wharf::Host) offers to any number of clients, of either era, over the
//! transports of `wharf_serve`. Its clients share the host's servers.
//!
//! A server's question crosses from either era to the other. A stateless server gets the capabilities of the client
//! with every call. A server of a handshake revision learns them once per connection, so a client that can be asked
//! uses an instance of it, which serves one client at a time. All others share one.
//!
//! Calls pass the host's gate on behalf of the client's principal. Arguments and results are forwarded as they are.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bridge;
mod catalog_view;
mod client_class;
mod client_view;
mod connection;
mod conversation;
mod errors;
mod gateway;
mod instances;
mod keys;
mod list_changes;
mod principal_load;
mod profile;
mod progress;
mod questions;
mod request_state;
mod requests;
mod resource_updates;
mod responses;
mod route;
mod running_requests;
mod sealed;
mod tasks;
mod tool_search;
mod upstream;
mod upstream_task;

pub use catalog_view::NameScheme;
pub use client_class::{ClientClass, SamplingSupport};
pub use client_view::{ToolSurface, UnaskedClients, ViewOptions};
pub use gateway::{Gateway, GatewayBuilder, GatewayOptions, WeakGateway};
pub use instances::{InstanceFactory, InstanceKey};
pub use keys::{ClientKey, KeyRefusal, KeyTable, key_digest};
pub use profile::Profile;
pub use questions::{AnswerError, GatewayAsker, PendingQuestion, PendingQuestions, PermissionDetails, QuestionKind};
