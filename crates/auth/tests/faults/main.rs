//! What goes wrong between an account, its server and an authorization server (O01–O20), over real sockets.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod extensions;
mod logins;
mod renewals;
mod scene;
mod secrecy;
mod servers;
