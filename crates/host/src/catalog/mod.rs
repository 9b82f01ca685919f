//! What the servers offer, merged: names, descriptions and schemas fit for a model, and all of it verbatim beside them.
//!
//! A [`Section`] is what one server offers, a [`Catalog`] is all of them; both are values that never change. Nothing
//! here connects, waits, reads a clock or touches a file.

mod digest;
mod filter;
#[cfg(test)]
mod fixture;
mod identity;
mod kept;
mod listed;
mod marks;
mod naming;
mod neutral;
mod offered;
mod resolve;
mod schema;
mod section;
mod snapshot;
mod tool;
mod tree;

pub use digest::fingerprint;
pub use filter::Filter;
pub use identity::identity;
pub use kept::{KeptError, keep, recall};
pub use listed::{Freshness, ListName, Listed};
pub use marks::{Mark, SchemaFault};
pub use naming::{NameStyle, Names, name};
pub(crate) use neutral::visible;
pub use neutral::{DESCRIPTION, INSTRUCTIONS, Neutral, TITLE, neutral};
pub use resolve::Unresolved;
pub use schema::{Compiled, compile};
pub use section::{Inspector, Section, SectionParts};
pub use snapshot::Catalog;
pub use tool::CatalogTool;
