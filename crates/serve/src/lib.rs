//! The server side of the Model Context Protocol as transport.
//!
//! A [`Service`] says what messages mean; this crate says how they arrive and leave: Streamable HTTP with sessions and
//! stateless, the HTTP+SSE of 2024-11-05, and a pipe. It checks `Host` and `Origin` of every request, bounds what a client can
//! send and keep open, and numbers events so that a broken stream can be resumed.
//!
//! Messages are bytes. Nothing but their envelope is read here.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod address;
mod admission;
mod drain;
mod event_feed;
mod http;
mod message;
mod service;
mod session_streams;
mod stdio;

pub use ::http::HeaderMap;
pub use address::{parse_address, parse_loopback_address};
pub use admission::{AllowedHosts, AuthenticatedClient, Authenticator, ClientAccess, HostRefusal};
pub use drain::RequestDrain;
pub use http::{
    HttpContent, HttpExposure, HttpForm, HttpLimits, HttpProtection, HttpServer, HttpSessions, TlsIdentity,
};
pub use message::{ClientMessage, MessageKind, error_reply};
pub use service::{ClientConnection, Outbox, OutgoingMessage, Service};
pub use stdio::{LEAVE_LINE, serve_lines, serve_relay};
pub use wharf_wire::{RawJson, Revision};
