//! The Model Context Protocol as data: envelopes, ids, revisions, error codes and typed views.
//!
//! Nothing here does I/O. A message is scanned once, at its top level only, and what lies inside
//! `params`, `result` and `error` stays raw until somebody asks for a view of it; a view keeps the
//! raw text beside the fields it understands, so that unknown fields, key order and big numbers
//! survive whatever is forwarded.

#![warn(missing_docs)]

mod bounds;
mod content;
mod envelope;
mod era;
mod error;
mod id;
mod listing;
mod progress;
mod prompt;
mod raw;
mod resource;
mod revision;
mod scan;
mod straight;
mod tool;

pub use bounds::{Bounds, TooComplex};
pub use content::{Content, ResourceContents};
pub use envelope::{Envelope, Fault, ScanError, Span};
pub use era::{DiscoverResult, Implementation, InitializeResult, ServerCapabilities, UnsupportedRevision};
pub use error::{RpcError, code};
pub use id::Id;
pub use listing::{Page, View};
pub use progress::Progress;
pub use prompt::{PromptArgument, PromptDefinition, PromptMessage, PromptResult};
pub use raw::{DecodeError, NotJson, Raw, members};
pub use resource::{ReadResult, Resource, ResourceTemplate};
pub use revision::{Era, Revision, UnknownRevision};
pub use scan::{Scanner, scan, split_batch};
pub use tool::{ToolAnnotations, ToolDefinition, ToolResult};
