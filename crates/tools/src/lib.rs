//! Tools, the registry through which all callers invoke them, the permission gate, and outcomes.
//!
//! Every caller (an agent, a person at a shell, another program) calls a tool by name through one [`Registry`], which
//! consults its [`Gate`] before each call. The registry does not know a tool's implementation or provider: a [`Tool`]
//! is a description and a call, and a call returns a [`ToolOutcome`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod base64_text;
mod block;
mod call_errors;
mod description;
mod gate;
mod name_table;

mod block_reference;
mod duplicate_text;
mod notes;
mod outcome;
mod person_time;
mod registry;
mod snapshot;
mod tool;

pub use base64_text::{Base64Text, InvalidBase64};
pub use block::{EmbeddedContents, OutcomeBlock};
pub use call_errors::{RegistryCallError, ToolError, ToolErrorKind};
pub use description::{CallSubject, PermissionRequirement, ToolDescription, ToolHints, ToolRisk, ToolSource};
pub use gate::{AllowAllGate, CallRefusal, Gate, GateDecision, GatedCall, PermissionSource, RefusalReason};
pub use name_table::{NameEntry, NameLookup, NameTable};
pub use notes::{AgentNote, NoteLimits, NoteQueue};
pub use outcome::ToolOutcome;
pub use person_time::{PersonTime, PersonWait};
pub use registry::Registry;
pub use snapshot::{AbsenceExplainer, RegistrySnapshot, WithheldReason, WithheldTool};
pub use tool::{BoxFuture, CallProgress, CallerConsent, Principal, ProgressSink, Tool, ToolCaller, ToolInvocation};
// Documented in `wharf-spec`; here for crates that do not depend on it.
#[doc(hidden)]
pub use wharf_spec::{Fingerprint, closest_name};
