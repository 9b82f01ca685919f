//! Tools, the registry through which all callers invoke them, the permission gate, and outcomes.
//!
//! Every caller (an agent, a person at a shell, another program) calls a tool by name through one [`Registry`], which
//! consults its [`Gate`] before each call. The registry does not know a tool's implementation or provider: a [`Tool`]
//! is a description and a call, and a call returns an [`Outcome`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod block;
mod description;
mod encoded;
mod failure;
mod gate;
mod names;

mod notes;
mod outcome;
mod reference;
mod registry;
mod repeat;
mod snapshot;
mod tool;

pub use block::{Block, Contents};
pub use description::{CallSubject, Description, Origin, Permission, Risk, ToolHints};
pub use encoded::{Base64Text, NotBase64};
pub use failure::{RegistryCallError, ToolError, ToolErrorKind};
pub use gate::{AllowAllGate, Attempt, Check, Gate, Refusal, RefusalReason};
pub use names::{Found, Held, NameTable};
pub use notes::{Note, NoteLimits, Notes};
pub use outcome::{Outcome, Report};
pub use registry::Registry;
pub use snapshot::{RegistrySnapshot, Withheld, WithheldReason};
pub use tool::{Call, Consent, Pending, Progress, ProgressSink, Tool, ToolCaller};
pub use wharf_spec::Fingerprint;
pub use wharf_spec::nearest;
