//! The SDK's transport over the server end of an in-process connection. Carries whole messages as JSON in both
//! directions.
//!
//! No incoming message ends the SDK's loop. An unreadable request gets an error response if its id can be read. Other
//! unreadable messages are skipped.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetExtensions, RequestId, ServerJsonRpcMessage,
};
use rmcp::{RoleServer, transport::Transport};
use wharf_client::{ClientSender, LocalMessage, ServerEnd};

/// Nesting depth of in-process calls at which a message was sent. Travels in the message's extensions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallDepth(pub usize);

pub(crate) struct RmcpTransport {
    end: ServerEnd,
    outbox: ClientSender,
    era: ClientLifecycle,
    /// Error responses to server requests that this era does not allow. Delivered before any incoming message.
    refusals: VecDeque<ClientJsonRpcMessage>,
}

/// The lifecycle selected by the client's first requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientLifecycle {
    /// Undecided: the client has only sent ping and discover requests so far.
    Open,
    Handshake,
    Stateless,
}

impl RmcpTransport {
    pub fn new(end: ServerEnd) -> Self {
        Self { outbox: end.sender(), end, era: ClientLifecycle::Open, refusals: VecDeque::new() }
    }

    fn parse_incoming(&mut self, incoming: &LocalMessage) -> Option<ClientJsonRpcMessage> {
        let mut message = match serde_json::from_slice(&incoming.text) {
            Ok(message) => message,
            Err(error) => {
                self.reject_unreadable(incoming, &error);
                return None;
            }
        };
        let depth = CallDepth(incoming.depth);
        match &mut message {
            ClientJsonRpcMessage::Request(asked) => {
                self.detect_lifecycle(&asked.request);
                asked.request.extensions_mut().insert(depth);
            }
            // The SDK ends the session if anything other than a request comes first.
            _ if self.era == ClientLifecycle::Open => return None,
            ClientJsonRpcMessage::Notification(said) => drop(said.notification.extensions_mut().insert(depth)),
            _ => {}
        }
        Some(message)
    }

    fn detect_lifecycle(&mut self, request: &ClientRequest) {
        if self.era == ClientLifecycle::Open {
            self.era = match request {
                ClientRequest::InitializeRequest(_) => ClientLifecycle::Handshake,
                ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => ClientLifecycle::Open,
                _ => ClientLifecycle::Stateless,
            };
        }
    }

    fn reject_unreadable(&self, incoming: &LocalMessage, error: &serde_json::Error) {
        tracing::warn!(%error, "unreadable message from the client");
        let envelope = wharf_wire::scan(&incoming.text).ok().filter(|envelope| envelope.method.is_some());
        let id = envelope.and_then(|envelope| envelope.id).map(|id| id.slice(&incoming.text));
        if let Some(id) = id.and_then(|id| serde_json::from_slice::<RequestId>(id).ok()) {
            self.send_json(&error_response(id, "the server cannot parse the request"));
        }
    }

    /// Sends a message. Returns `false` if it cannot be serialized to JSON.
    fn send_json(&self, message: &ServerJsonRpcMessage) -> bool {
        let text = serde_json::to_vec(message);
        text.map(|text| self.outbox.send(text)).is_ok()
    }

    /// Queues an error response on the client's behalf. Revision 2026-07-28 has no server requests, so waiting for a
    /// response would only end with the call's timeout.
    fn queue_refusal(&mut self, id: RequestId) {
        let error =
            ErrorData::invalid_request("server requests are not supported: return an InputRequiredResult", None);
        self.refusals.push_back(ClientJsonRpcMessage::error(error, Some(id)));
    }
}

impl Transport<RoleServer> for RmcpTransport {
    type Error = Infallible;

    /// Sends immediately; the returned future is already complete.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match message {
            ServerJsonRpcMessage::Request(asked) if self.era != ClientLifecycle::Handshake => {
                self.queue_refusal(asked.id)
            }
            message if self.send_json(&message) => {}
            ServerJsonRpcMessage::Response(answer) => {
                self.send_json(&error_response(answer.id, "the response cannot be serialized to JSON"));
            }
            _ => tracing::warn!("in-process server sent a message that cannot be serialized to JSON"),
        }
        ready(Ok(()))
    }

    /// Cancel-safe.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(refusal) = self.refusals.pop_front() {
                return Some(refusal);
            }
            let incoming = self.end.receive().await?;
            if let Some(message) = self.parse_incoming(&incoming) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

fn error_response(id: RequestId, reason: &'static str) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, reason, None), Some(id))
}
