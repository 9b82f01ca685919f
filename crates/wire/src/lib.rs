//! The Model Context Protocol as data: envelopes, ids, revisions, error codes and typed views.
//!
//! This crate does no I/O. A message is scanned once, at its top level only. `params`, `result` and `error` stay raw
//! until a caller requests a view. A view keeps the raw text beside the fields it decodes, so that unknown fields, key
//! order and large numbers survive forwarding.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cache;
mod completion;
mod content;
mod elicit;
mod envelope;
mod error;
mod fast_path;
mod header_params;
mod id;
mod input;
mod listing;
mod log;
mod progress;
mod prompt;
mod resource;
mod revision;
mod sampling;
mod scan;
mod server_info;
mod skill;
mod subscription;
mod task;
mod tool;

pub use cache::{CacheHint, CacheScope, MAX_CACHE_TTL};
pub use completion::{Completion, MAX_COMPLETIONS, Reference};
pub use content::{Content, ResourceContents};
pub use elicit::{
    Choice, Elicitation, ElicitationResponse, FieldError, FieldErrorKind, FieldKind, FormField, FormRequest,
    JsonNumber, MAX_FIELDS, MAX_OPTIONS, TextFormat, UrlRequest, skeleton,
};
pub use envelope::{Envelope, Fault, PartialEnvelope, ScanError, Span};
pub use error::{RpcError, code};
pub use header_params::{
    HeaderAnnotationError, HeaderParam, HeaderValueError, encode_header_value, header_params, mcp_name_param,
};
pub use id::Id;
pub use input::{InputRequest, InputRequired, input_requests};
pub use listing::{Page, View};
pub use log::{LogLevel, LogMessage, UnknownLevel};
pub use progress::Progress;
pub use prompt::{PromptArgument, PromptDefinition, PromptMessage, PromptResult};
pub use resource::{ReadResult, Resource, ResourceTemplate};
pub use revision::{Era, Revision, UnknownRevision};
pub use sampling::{Root, SamplingRequest};
pub use scan::{Scanner, scan, split_batch};
pub use server_info::{DiscoverResult, Implementation, InitializeResult, ServerCapabilities, UnsupportedRevision};
pub use skill::{Sha256, Skill, SkillFile, SkillFiles};
pub use subscription::{Acknowledged, Interest, subscription_id};
pub use task::{Task, TaskStatus};
pub use tool::{TaskSupport, ToolAnnotations, ToolDefinition, ToolResult};
pub use wharf_json::{InvalidJson, JsonDecodeError, JsonLimitExceeded, JsonLimits, object_members};
// Documented in `wharf-json` and, for embedders, in `wharf`.
#[doc(hidden)]
pub use wharf_json::RawJson;
