//! The merged catalog of all servers: names, descriptions and schemas prepared for a model, along with the original
//! definitions.
//!
//! A [`Section`] holds one server's tools, resources and prompts, a [`Catalog`] all sections. Both are immutable. This
//! module does no I/O, does not wait and reads no clock.

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
