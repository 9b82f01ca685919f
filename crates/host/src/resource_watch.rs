//! Subscriptions to resources by an embedder. All subscribers to a resource share one subscription at its server.

use std::sync::Arc;

use tokio::time::timeout_at;
use wharf_client::CallError;
use wharf_spec::ServerName;
use wharf_tools::ToolCaller;

use crate::access::{SUBSCRIBE_RESOURCE_TOOL, ServerAccess, rule_arguments};
use crate::context::HostContext;
use crate::error::HostError;
use crate::server::Server;

/// A subscription to a resource. Dropping it ends it. Changes are published as
/// [`Event::ResourceUpdated`](crate::Event::ResourceUpdated).
pub struct ResourceWatch {
    context: Arc<HostContext>,
    server: Arc<Server>,
    uri: String,
}

impl Drop for ResourceWatch {
    fn drop(&mut self) {
        self.context.watches.release(&self.server, &self.uri);
    }
}

impl HostContext {
    /// Subscribes to a resource, if the gate permits it, and waits until its server has confirmed it.
    pub async fn watch_resource(
        self: &Arc<Self>,
        server: &ServerName,
        uri: &str,
        caller: &ToolCaller,
    ) -> Result<ResourceWatch, HostError> {
        let server = self.server(server.as_str())?;
        let arguments = rule_arguments(&server, uri);
        let access = ServerAccess { tool: SUBSCRIBE_RESOURCE_TOOL, server: &server, arguments: &arguments, caller };
        self.permit_uri(access, uri, None).await?;
        let deadline = self.call_deadline(&server, None);
        // Counted as a use, so that the server is not stopped as idle before it is asked.
        let in_use = server.usage.track_call();
        let live = server.wait_until_open(None, deadline).await?;
        if !live.connection.facts().capabilities.resources_subscribe {
            return Err(server.call_error(CallError::Unsupported("resource subscriptions")));
        }
        let invalid = |why: &str| server.call_error(CallError::Invalid(why.to_owned()));
        let version = self.watches.hold(&server, uri);
        let version = version.ok_or_else(|| invalid("too many resources of the server are subscribed"))?;
        drop(in_use);
        let watch = ResourceWatch { context: Arc::clone(self), server: Arc::clone(&server), uri: uri.to_owned() };
        match timeout_at(deadline.at, server.watched.wait_confirmed(version, uri)).await {
            Ok(true) => Ok(watch),
            Ok(false) => Err(invalid("the server does not report changes of this resource")),
            Err(_) => Err(invalid("the server did not confirm the subscription in time")),
        }
    }
}
