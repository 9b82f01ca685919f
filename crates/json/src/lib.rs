//! JSON text that is carried, not understood: raw values, and how much structure one may have before it is decoded.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bounds;
mod raw;

pub use bounds::{Bounds, TooComplex};
pub use raw::{DecodeError, Members, NotJson, Raw, members};
