//! The adapter itself: a handler of the SDK as a server in this process.

use rmcp::ServerHandler;
use rmcp::service::serve_server;
use wharf_client::{LocalServer, Pending, ServerEnd, Workers};

use crate::line::Line;
use crate::service::OnWorkers;

/// A server of the SDK's making that lives in this process.
pub struct RmcpServer<H>(H);

impl<H: ServerHandler> RmcpServer<H> {
    /// A server that does what the handler does.
    pub fn new(handler: H) -> Self {
        Self(handler)
    }
}

impl<H: ServerHandler> LocalServer for RmcpServer<H> {
    /// Serves until the client hangs up or the SDK gives up. Dropped, it cancels whatever is under way.
    fn serve(self: Box<Self>, end: ServerEnd, workers: Workers) -> Pending<()> {
        let service = OnWorkers::new(self.0, workers);
        Box::pin(async move {
            match serve_server(service, Line::new(end)).await {
                Ok(running) => {
                    if let Err(error) = running.waiting().await {
                        tracing::warn!(%error, "a server in this process failed");
                    }
                }
                Err(error) => tracing::warn!(%error, "a server in this process did not get ready"),
            }
        })
    }
}
