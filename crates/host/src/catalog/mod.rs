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
pub use filter::ToolFilter;
pub use identity::identity;
pub use kept::{CatalogCacheError, keep, recall};
pub use listed::{ListFreshness, ListName, ServerLists};
pub use marks::{SchemaError, ToolWarning};
pub use naming::{NameStyle, ToolNames, name};
pub(crate) use neutral::visible;
pub use neutral::{DESCRIPTION, INSTRUCTIONS, SanitizedText, TITLE, neutral};
pub use resolve::ToolResolveError;
pub use schema::{CompiledSchema, compile};
pub use section::{Section, SectionInput, ToolInspector};
pub use snapshot::Catalog;
pub use tool::CatalogTool;
