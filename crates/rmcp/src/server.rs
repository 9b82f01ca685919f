//! Adapter that runs an SDK handler as an in-process server.

use rmcp::ServerHandler;
use rmcp::service::serve_server;
use wharf_client::{BoxedFuture, LocalServer, ServerEnd, Workers};

use crate::local_transport::RmcpTransport;
use crate::service::WorkerService;

/// An in-process server backed by an SDK handler.
pub struct RmcpServer<H>(H);

impl<H: ServerHandler> RmcpServer<H> {
    /// Creates a server from a handler.
    pub fn new(handler: H) -> Self {
        Self(handler)
    }
}

impl<H: ServerHandler> LocalServer for RmcpServer<H> {
    /// Serves until the client disconnects or the SDK ends the session. Dropping the future cancels all requests in
    /// progress.
    fn serve(self: Box<Self>, end: ServerEnd, workers: Workers) -> BoxedFuture<()> {
        let service = WorkerService::new(self.0, workers);
        Box::pin(async move {
            match serve_server(service, RmcpTransport::new(end)).await {
                Ok(running) => {
                    if let Err(error) = running.waiting().await {
                        tracing::warn!(%error, "in-process server failed");
                    }
                }
                Err(error) => tracing::warn!(%error, "in-process server failed to start"),
            }
        })
    }
}
