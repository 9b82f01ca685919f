//! User settings for the login at one server.

pub use wharf_spec::{AssertionSource, AuthSettings, DpopMode, TokenGrant};
