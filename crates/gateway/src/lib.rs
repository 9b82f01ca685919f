//! Many MCP clients on one host.
//!
//! A [`Gateway`] serves everything a [`Host`](wharf::Host) offers to any number of clients, of either era, over the
//! transports of `wharf_serve`. Its clients share the host's servers. They declare nothing to these servers, so no
//! server can ask one of them a question.
//!
//! Calls pass the host's gate on behalf of the client's principal. Arguments and results are forwarded as they are.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod catalog_view;
mod connection;
mod errors;
mod gateway;
mod list_changes;
mod requests;
mod responses;
mod running_requests;

pub use catalog_view::NameScheme;
pub use gateway::{Gateway, GatewayOptions};
