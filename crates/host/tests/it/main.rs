//! The host as an embedder sees it, over servers in this process.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod access;
mod asking;
mod calls;
mod fixture;
mod forwarding;
mod lazy;
mod library;
mod life;
mod login;
mod management;
mod origins;
mod permission;
mod permits;
mod polling;
mod principals;
mod results;
mod roster;
mod startup;
mod watching;
