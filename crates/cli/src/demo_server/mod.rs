//! The demo server behind `wharf demo-server`: something harmless to try Wharf on.
//!
//! A whole MCP server in every revision, written with blocking I/O and its own JSON so that it
//! shares no code, and no bug, with the client it is tried with. [`server::DemoServer`] knows
//! nothing of transports: it takes a message and answers through a [`message::Outbox`]. It makes
//! no requests of its own, keeps nothing on disk and reaches no network.

mod arguments;
mod calls;
mod completion;
mod content;
mod message;
mod negotiation;
mod pages;
mod prompts;
mod resources;
mod revision;
mod server;
mod stdio;
mod tools;

pub use server::Options;
pub use stdio::serve_stdio;

#[cfg(test)]
mod tests;
