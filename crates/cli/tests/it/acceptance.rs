//! The acceptance lists of the papers, from end to end: `wharf` itself at a terminal, a model API that answers from a
//! script, and real MCP servers. `evidence/acceptance.md` names these tests; [`table`] checks that it names them rightly.
//!
//! `cargo xtask test` installs the servers of others and says where; a missing one is a failure and never skipped.

pub mod agent_home;
mod configuring;
mod connecting;
mod logging_in;
mod others;
mod permitting;
mod screens;
mod table;
mod talking;
mod watching;
