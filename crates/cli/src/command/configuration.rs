//! Commands that read and change the configuration, one module each.

mod item;
pub mod relative_paths;
mod undo;

pub mod add;
pub mod add_json;
pub mod enable_disable;
pub mod get;
pub mod list;
pub mod remove;
pub mod schema;
pub mod secret;
pub mod validate;
