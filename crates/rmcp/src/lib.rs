//! In-process MCP servers written with `rmcp`, the Rust SDK.
//!
//! Adapts any `ServerHandler` to a server that a [`Connection`](wharf_client::Connection) can talk to without a process
//! or a pipe. The client API is the same as for every other server:
//!
//! ```
//! use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock};
//! use rmcp::model::{ServerCapabilities, ServerConfig};
//! use rmcp::service::RequestContext;
//! use rmcp::{ErrorData, RoleServer, ServerHandler};
//! use wharf_client::{RequestOptions, ConnectOptions, connect_local};
//! use wharf_rmcp::RmcpServer;
//! use wharf_wire::RawJson;
//!
//! struct Greeter;
//!
//! impl ServerHandler for Greeter {
//!     fn get_info(&self) -> ServerConfig {
//!         ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
//!     }
//!
//!     async fn call_tool(
//!         &self,
//!         request: CallToolRequestParams,
//!         _context: RequestContext<RoleServer>,
//!     ) -> Result<CallToolResponse, ErrorData> {
//!         let text = format!("{} says hello", request.name);
//!         Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let connection = connect_local(RmcpServer::new(Greeter), ConnectOptions::default()).await?;
//! let result = connection.call_tool("greet", &RawJson::empty_object(), RequestOptions::default()).await?;
//! assert!(result.raw.as_str().contains("greet says hello"));
//! connection.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! **Threads.** The SDK's loop runs on the host's runtime. Handler code runs on the server's own
//! [`Workers`](wharf_client::Workers). A handler that blocks occupies only its own thread. A handler that panics fails
//! only its own request: a tool call gets an error result, any other request a JSON-RPC error.
//!
//! **Cancellation.** Cancelling a call cancels the token in the handler's context. The handler then has a few seconds
//! to return, after which its future is dropped. Its response is discarded.
//!
//! **Server requests.** The SDK serves both eras, and the client tries 2026-07-28 first. In that era a handler requests
//! input by returning an `InputRequiredResult`; a request made through `context.peer` is refused immediately. Connect a
//! handler that uses `context.peer` with [`NegotiationMode::Handshake`](wharf_client::NegotiationMode::Handshake).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod local_transport;
mod server;
mod service;

pub use server::RmcpServer;
