//! The merged catalog of all servers: names, descriptions and schemas prepared for a model, along with the original
//! definitions.
//!
//! A [`Section`] holds one server's tools, resources and prompts, a [`Catalog`] all sections. Both are immutable. This
//! module does no I/O, does not wait and reads no clock.

mod cache;
mod filter;
mod fingerprint;
#[cfg(test)]
mod fixture;
mod identity;
mod naming;
mod resolve;
mod sanitize;
mod schema;
mod section;
mod server_lists;
mod snapshot;
mod tool;
mod tree;
mod visibility;
mod warnings;

pub use cache::{CatalogCacheError, decode_cache, encode_cache};
pub use filter::ToolFilter;
pub use fingerprint::fingerprint;
pub use identity::{cache_file_name, identity};
pub use naming::{NameStyle, ToolNames, tool_names};
pub use resolve::ToolResolveError;
pub(crate) use sanitize::escape_hidden;
pub use sanitize::{DESCRIPTION, INSTRUCTIONS, SanitizedText, TITLE, sanitize};
pub use schema::{CompiledSchema, compile_schema};
pub use section::{Section, SectionInput, ToolInspector};
pub use server_lists::{ListFreshness, ListName, ServerLists};
pub use snapshot::Catalog;
pub use tool::CatalogTool;
pub use warnings::{SchemaError, ToolWarning};
