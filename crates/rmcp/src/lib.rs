//! Servers written with the Rust SDK, `rmcp`, in the same process as their host.
//!
//! Any `ServerHandler` becomes a server a [`Connection`](wharf_client::Connection) speaks to, without a process and
//! without a pipe. What is called is the same as for every other server:
//!
//! ```
//! use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock};
//! use rmcp::model::{ServerCapabilities, ServerConfig};
//! use rmcp::service::RequestContext;
//! use rmcp::{ErrorData, RoleServer, ServerHandler};
//! use wharf_client::{CallOptions, ConnectOptions, connect_local};
//! use wharf_rmcp::RmcpServer;
//! use wharf_wire::Raw;
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
//! let result = connection.call_tool("greet", &Raw::empty_object(), CallOptions::default()).await?;
//! assert!(result.raw.get().contains("greet says hello"));
//! connection.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! **Where things run.** The SDK's loop runs on the host's runtime, what the handler does runs on the server's own
//! [`Workers`](wharf_client::Workers). A handler that blocks keeps its thread and nobody else's; one that panics fails
//! the call it was at: a tool's call is answered with an error result, any other with an error.
//!
//! **Cancellation.** A call that is withdrawn cancels the token in the handler's context. The handler then has a few
//! seconds to leave by itself, after which its future is dropped. What it still answers reaches nobody.
//!
//! **Asking back.** The SDK serves both eras, and is asked for 2026-07-28 first. There a handler asks by answering with
//! an `InputRequiredResult`; a request made through `context.peer` is refused at once. A handler that asks through
//! `context.peer` is to be connected with [`Negotiation::Handshake`](wharf_client::Negotiation::Handshake).

#![forbid(unsafe_code)]

mod line;
mod server;
mod service;

pub use server::RmcpServer;
