//! One MCP server: open a link to it, agree on a revision, call, cancel, close.
//!
//! [`connect`] starts a server under a guard and negotiates; the [`Connection`] it gives is a cheap handle on which
//! any number of calls run at once. Each call ends in exactly one outcome, within its deadline, and a call whose
//! future is dropped is withdrawn. Nothing on the way decodes what it only forwards.

mod connect;
mod connection;
mod counters;
mod engine;
mod era;
mod error;
mod flow;
pub mod guard;
mod limits;
mod options;
mod tap;
mod trace;
mod transport;

pub use connect::connect;
pub use connection::{Connection, ServerFacts};
pub use counters::Counters;
pub use engine::{Answer, ResultKind};
pub use error::{CallError, ConnectCause, ConnectError, Gone, GoneCause, TimeLimit};
pub use flow::{Listing, Withheld};
pub use guard::{Containment, Exit, GuardProgram};
pub use limits::Limits;
pub use options::{CallOptions, ConnectOptions, Negotiation, Observer, ProgressSink, StepSink};
pub use tap::{Direction, Tap};
pub use trace::{ConnectTrace, Step, StepOutcome};
