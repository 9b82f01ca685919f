//! Import from and export to the configuration files of other MCP clients.
//!
//! Each client is described by one table of field names, used for import and export. Every loss is reported in a
//! [`ConversionNote`]. Notes contain names of keys and variables, never values.

mod client;
mod client_schema;
mod client_schemas;
mod export;
mod import;
mod note;
mod replace;
mod server_reader;
mod server_writer;
mod variable_syntax;
mod variables;
mod write;

pub use client::ExternalClient;
pub use export::{ExportedFile, export};
pub use import::{ImportedServer, import};
pub use note::{ConversionNote, NoteSeverity};
pub use replace::{AddedServer, ReplaceRefusal, replace_servers};
