//! Outgoing HTTP: a connection pool with size limits, proxies, certificates and address checks, and the SSE parser.
//!
//! This crate never follows a redirect to another origin, never reads a proxy from the environment, and never relies on
//! the declared length of a body.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod authorize;
mod body;
mod error;
mod net;
mod reach;
mod resolve;
mod sse;

pub use authorize::{AuthRecovery, Authorizer, Carried, NotAuthorized, Pending, Refusal, RequestCredentials};
pub use body::{Body, BodyError};
pub use error::{OpenError, SendError};
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
pub use net::{Net, NetOptions, RedirectPolicy, Request, Response};
pub use reach::{NetworkZone, Reach, literal};
pub use sse::{SseEvent, SseParser, SseTooLarge};
