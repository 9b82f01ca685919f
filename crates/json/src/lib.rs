//! Raw JSON values that are forwarded without parsing, and structural limits for decoding them.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bounds;
mod raw;

pub use bounds::{JsonLimitExceeded, JsonLimits};
pub use raw::{InvalidJson, JsonDecodeError, ObjectMembers, RawJson, members};
