//! Runs an SDK handler on the server's own worker threads.
//!
//! Decides which requests wait for a concurrency permit, and handles panics and cancellation. The protocol itself is
//! left to the SDK.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolResult, ClientNotification, ClientRequest, ContentBlock, ErrorData, Extensions, ProtocolVersion,
    ServerConfig, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, Service};
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::{Semaphore, oneshot};
use wharf_client::{HandlerPanic, Workers};

use crate::local_transport::CallDepth;

/// Maximum handlers running at once. Further calls wait for a permit, within their own timeout.
const MAX_CONCURRENT_HANDLERS: usize = 64;
/// Grace period for a handler to return after its call is cancelled.
const CANCEL_GRACE_PERIOD: Duration = Duration::from_secs(5);

pub(crate) struct WorkerService<H> {
    handler: Arc<H>,
    workers: Workers,
    turns: Arc<Semaphore>,
}

type HandlerResult = Result<ServerResult, ErrorData>;

impl<H: ServerHandler> WorkerService<H> {
    pub fn new(handler: H, workers: Workers) -> Self {
        Self { handler: Arc::new(handler), workers, turns: Arc::new(Semaphore::new(MAX_CONCURRENT_HANDLERS)) }
    }

    /// Starts a request on the workers. The receiver yields the response, or closes if the work is abandoned.
    fn start_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<oneshot::Receiver<HandlerResult>, ErrorData> {
        let depth = call_depth(&context.extensions);
        let turns = needs_permit(&request, depth).then(|| Arc::clone(&self.turns));
        let (withdrawn, when_panicked) = (context.ct.clone(), PanicReply::for_request(&request, &context));
        let handler = Arc::clone(&self.handler);
        let work = self.workers.catch_panics(async move { Service::handle_request(&*handler, request, context).await });
        let (answer, answered) = oneshot::channel();
        let job = async move {
            let _turn = match turns {
                Some(turns) => tokio::select! {
                    turn = turns.acquire_owned() => turn.ok(),
                    () = withdrawn.cancelled() => return,
                },
                None => None,
            };
            let given_up = async {
                withdrawn.cancelled().await;
                tokio::time::sleep(CANCEL_GRACE_PERIOD).await;
            };
            tokio::select! {
                outcome = work => {
                    // The receiver is dropped if the call was cancelled.
                    let _ = answer.send(outcome.unwrap_or_else(|panicked| when_panicked.to_result(&panicked)));
                }
                () = given_up => {}
            }
        };
        match self.workers.spawn(depth, job) {
            Some(_) => Ok(answered),
            None => Err(internal_error("the call was not executed: all worker threads of this server are blocked")),
        }
    }
}

impl<H: ServerHandler> Service<RoleServer> for WorkerService<H> {
    /// Waits for the handler until the call is cancelled. The SDK discards any later response.
    async fn handle_request(&self, request: ClientRequest, context: RequestContext<RoleServer>) -> HandlerResult {
        let withdrawn = context.ct.clone();
        let answered = self.start_request(request, context)?;
        tokio::select! {
            biased;
            answer = answered => answer.unwrap_or_else(|_| Err(internal_error("the server is shutting down"))),
            () = withdrawn.cancelled() => Err(internal_error("the call was cancelled")),
        }
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let depth = call_depth(&context.extensions);
        let handler = Arc::clone(&self.handler);
        let work = async move { Service::handle_notification(&*handler, notification, context).await };
        let work = self.workers.catch_panics(work);
        self.workers.spawn(depth, async move { drop(work.await) });
        Ok(())
    }

    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&*self.handler)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(&*self.handler)
    }
}

/// Reply format for a panicking handler: an error result for a tool call (shaped for the negotiated revision), a
/// JSON-RPC error for any other request.
#[derive(Clone, Copy)]
enum PanicReply {
    ToolResult { handshake: bool },
    Error,
}

impl PanicReply {
    fn for_request(request: &ClientRequest, context: &RequestContext<RoleServer>) -> Self {
        match request {
            ClientRequest::CallToolRequest(_) => Self::ToolResult {
                handshake: context.protocol_version().is_none_or(|version| version.has_initialize()),
            },
            _ => Self::Error,
        }
    }

    fn to_result(self, panicked: &HandlerPanic) -> HandlerResult {
        let Self::ToolResult { handshake } = self else { return Err(internal_error(panicked.to_string())) };
        let text = format!("tool failed: {panicked}");
        let mut result = ServerResult::CallToolResult(CallToolResult::error(vec![ContentBlock::text(text)]));
        if handshake {
            result.strip_result_type_for_legacy_peer();
        }
        Ok(result)
    }
}

/// Reports whether a request needs a concurrency permit. A nested call does not: its caller already holds a permit, and
/// if such callers held all permits none would ever be released.
fn needs_permit(request: &ClientRequest, depth: usize) -> bool {
    let long = matches!(
        request,
        ClientRequest::CallToolRequest(_) | ClientRequest::ReadResourceRequest(_) | ClientRequest::GetPromptRequest(_)
    );
    long && depth == 0
}

fn call_depth(extensions: &Extensions) -> usize {
    extensions.get::<CallDepth>().copied().unwrap_or_default().0
}

fn internal_error(message: impl Into<Cow<'static, str>>) -> ErrorData {
    ErrorData::internal_error(message, None)
}
