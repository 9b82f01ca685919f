//! Load on an MCP server over HTTP: a client that costs little itself, so that the figures are those of the server.

mod http_connection;
mod mcp_client;
mod processes;

pub use http_connection::{HttpConnection, HttpReply};
pub use mcp_client::{ClientEra, ClientOptions, Endpoint, LoadError, McpClient};
pub use processes::{ProcessUse, process_tree, process_use};
