//! The client library against the demo server, every feature in every revision that has it.
//! `evidence/protocol.md` names these tests; [`table`] checks that it names them rightly.

mod asking;
mod forwarding;
mod host;
mod keeping;
mod table;
mod watching;
mod working;
