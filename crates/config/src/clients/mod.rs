//! The files other clients keep their servers in: read into entries of our shape, and written from them.
//!
//! Each client is a table of what it calls things, read in one direction and in the other. Whatever cannot
//! be carried over is said in a [`Note`], never in silence; a note names keys and variables, and no values.

mod client;
mod dialect;
mod export;
mod fields;
mod filling;
mod import;
mod note;
mod shape;
mod tables;
mod variables;
mod write;

pub use client::Client;
pub use export::{Exported, export};
pub use import::{Imported, import};
pub use note::{Note, NoteSeverity};
