//! The SDK's transport over the server's end of a connection: whole messages, as JSON both ways.
//!
//! Nothing that arrives ends the SDK's loop: what cannot be read is answered where it can be, and otherwise skipped.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetExtensions, RequestId, ServerJsonRpcMessage,
};
use rmcp::{RoleServer, transport::Transport};
use wharf_client::{Incoming, Outbox, ServerEnd};

/// Within how many calls to servers in this process a message was sent; travels in its extensions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Depth(pub usize);

pub(crate) struct Line {
    end: ServerEnd,
    outbox: Outbox,
    era: Era,
    /// Answers to what the server asked and may not ask; it finds them before anything else.
    refusals: VecDeque<ClientJsonRpcMessage>,
}

/// Which lifecycle the client has chosen by what it sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    /// None yet: so far it has only looked.
    Open,
    Handshake,
    Stateless,
}

impl Line {
    pub fn new(end: ServerEnd) -> Self {
        Self { outbox: end.outbox(), end, era: Era::Open, refusals: VecDeque::new() }
    }

    fn read(&mut self, incoming: &Incoming) -> Option<ClientJsonRpcMessage> {
        let mut message = match serde_json::from_slice(&incoming.text) {
            Ok(message) => message,
            Err(error) => {
                self.unreadable(incoming, &error);
                return None;
            }
        };
        let depth = Depth(incoming.depth);
        match &mut message {
            ClientJsonRpcMessage::Request(asked) => {
                self.notice(&asked.request);
                asked.request.extensions_mut().insert(depth);
            }
            // The SDK gives up on a client that says anything else before it has asked something.
            _ if self.era == Era::Open => return None,
            ClientJsonRpcMessage::Notification(said) => drop(said.notification.extensions_mut().insert(depth)),
            _ => {}
        }
        Some(message)
    }

    fn notice(&mut self, request: &ClientRequest) {
        if self.era == Era::Open {
            self.era = match request {
                ClientRequest::InitializeRequest(_) => Era::Handshake,
                ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => Era::Open,
                _ => Era::Stateless,
            };
        }
    }

    fn unreadable(&self, incoming: &Incoming, error: &serde_json::Error) {
        tracing::warn!(%error, "a message the SDK cannot read");
        let envelope = wharf_wire::scan(&incoming.text).ok().filter(|envelope| envelope.method.is_some());
        let id = envelope.and_then(|envelope| envelope.id).map(|id| id.of(&incoming.text));
        if let Some(id) = id.and_then(|id| serde_json::from_slice::<RequestId>(id).ok()) {
            self.post(&refusal(id, "the server cannot read the request"));
        }
    }

    /// Sends it, if it is to be had as JSON at all.
    fn post(&self, message: &ServerJsonRpcMessage) -> bool {
        let text = serde_json::to_vec(message);
        text.map(|text| self.outbox.send(text)).is_ok()
    }

    /// Says no in the client's place: 2026-07-28 has no requests of the server's, and waiting for an answer to one
    /// would take the whole time of the call.
    fn refuse(&mut self, id: RequestId) {
        let error = ErrorData::invalid_request("a server asks by answering with an InputRequiredResult", None);
        self.refusals.push_back(ClientJsonRpcMessage::error(error, Some(id)));
    }
}

impl Transport<RoleServer> for Line {
    type Error = Infallible;

    /// Sends at once; there is nothing to wait for.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match message {
            ServerJsonRpcMessage::Request(asked) if self.era != Era::Handshake => self.refuse(asked.id),
            message if self.post(&message) => {}
            ServerJsonRpcMessage::Response(answer) => {
                self.post(&refusal(answer.id, "the answer cannot be written as JSON"));
            }
            _ => tracing::warn!("a server in this process said something that cannot be written as JSON"),
        }
        ready(Ok(()))
    }

    /// Dropped while it waits, it has taken nothing.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(refusal) = self.refusals.pop_front() {
                return Some(refusal);
            }
            let incoming = self.end.receive().await?;
            if let Some(message) = self.read(&incoming) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

fn refusal(id: RequestId, reason: &'static str) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, reason, None), Some(id))
}
