//! Commands that read and change the configuration, one module each.

mod item;
pub mod relative;
mod undo;

pub mod add;
pub mod add_json;
pub mod get;
pub mod list;
pub mod remove;
pub mod schema;
pub mod secret;
pub mod switch;
pub mod validate;
