//! Outgoing HTTP: a connection pool with size limits, proxies, certificates and address checks, and the SSE parser.
//!
//! This crate never follows a redirect to another origin, never reads a proxy from the environment, and never relies on
//! the declared length of a body.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod address_policy;
mod authorize;
mod body;
mod clients;
mod error;
mod net;
mod resolve;
mod sse;

pub use address_policy::{AddressPolicy, NetworkZone, ip_literal};
pub use authorize::{
    AuthFuture, AuthRecovery, AuthRejection, Authorizer, CredentialHeaders, NotAuthorized, RequestCredentials,
};
pub use body::{BodyError, ResponseBody};
pub use error::{NetOpenError, SendError};
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
pub use net::{HttpRequest, HttpResponse, Net, NetOptions, RedirectPolicy};
pub use resolve::lookup_host;
pub use sse::{SseEvent, SseParser, SseTooLarge};
