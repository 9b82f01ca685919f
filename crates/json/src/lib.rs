//! Raw JSON values that are forwarded without parsing, and structural limits for decoding them.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bounds;
mod raw;

pub use bounds::{JsonLimits, TooComplex};
pub use raw::{JsonDecodeError, Members, NotJson, RawJson, members};
