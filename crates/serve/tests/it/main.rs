//! The transports over real pipes and sockets, with a service that does what its methods say.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod connections;
mod pipe;
mod service;
