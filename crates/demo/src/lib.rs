//! The demo server behind `wharf demo-server`: a harmless MCP server to try Wharf on.
//!
//! A whole MCP server in every revision, with threads and JSON of its own, so that it shares no bug with the client it
//! is tried with. `server::DemoServer` knows nothing of transports: it takes a message and answers through a
//! `message::Outbox`. Over HTTP `wharf_serve` is its transport, and it can be reached from this machine alone. It keeps
//! nothing on disk and reaches no network.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod arguments;
mod call_signal;
mod calls;
mod client_link;
mod completion;
mod content;
mod elicitation;
mod envelope;
mod http;
mod icons;
mod logging;
mod long_tools;
mod message;
mod negotiation;
mod pages;
mod port;
mod prompts;
mod questions;
mod resources;
mod revision;
mod rounds;
mod sampling;
mod server;
mod skills;
mod stdio;
mod subscriptions;
mod tasks;
mod tools;

pub use http::{HttpForm, ListenOptions, parse_address, serve_http};
pub use server::DemoServerOptions;
pub use stdio::serve_stdio;

#[cfg(test)]
mod tests;
