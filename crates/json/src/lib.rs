//! Raw JSON values that are forwarded without parsing, and structural limits for decoding them.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod limits;
mod raw;
mod strict;
mod surrogates;

pub use limits::{JsonLimitExceeded, JsonLimits};
pub use raw::{InvalidJson, JsonDecodeError, ObjectMembers, RawJson, object_members};
