//! Loops over single requests that never see a pipe.

mod paginate;

pub(crate) use paginate::{ListKind, list};
pub use paginate::{Listing, Withheld};
