//! A model request in flight.

use std::sync::Arc;

use tokio::sync::mpsc;
use wharf_tools::BoxFuture;

use super::Agent;
use crate::conversation::Conversation;
use crate::provider::{CompletionRequest, ModelError, ModelEvent, ModelStream, ToolChoice};
use crate::tool_offer::ToolOffer;

/// A response in flight. Dropping it closes the stream.
pub(super) enum ResponseInFlight {
    Opening(ConnectingResponse),
    Open(Box<ModelStream>),
}

/// A request without a response yet.
pub(super) struct ConnectingResponse {
    stream: BoxFuture<'static, Result<Box<ModelStream>, ModelError>>,
    /// Retry delays reported while connecting. Unbounded, but limited by the few retries of a request.
    waits: mpsc::UnboundedReceiver<ModelEvent>,
}

/// An event of a request without a response yet.
enum ConnectEvent {
    Waiting(ModelEvent),
    Begun(Result<Box<ModelStream>, ModelError>),
}

impl ResponseInFlight {
    /// Prepares a request. It is sent on the first call of [`ResponseInFlight::next`].
    pub fn prepare(
        agent: &Agent,
        conversation: Arc<Conversation>,
        tool_offer: Arc<ToolOffer>,
        tool_choice: ToolChoice<'static>,
    ) -> Self {
        let (model, effort) = (agent.model.clone(), agent.effort);
        let (sender, waits) = mpsc::unbounded_channel();
        let stream = Box::pin(async move {
            let tools = &tool_offer.definitions;
            let request = CompletionRequest { conversation: &conversation, tools, tool_choice, effort };
            // The receiver may be gone.
            model.stream_with_retry_events(request, |wait| drop(sender.send(wait))).await.map(Box::new)
        });
        Self::Opening(ConnectingResponse { stream, waits })
    }

    /// Returns the next item of the response. Cancel-safe.
    pub async fn next(&mut self) -> Result<ModelEvent, ModelError> {
        loop {
            match self {
                Self::Opening(opening) => match opening.next().await {
                    ConnectEvent::Waiting(wait) => return Ok(wait),
                    ConnectEvent::Begun(stream) => *self = Self::Open(stream?),
                },
                // After the last event or an error this method is not called again, so the end of the stream is an
                // incomplete response.
                Self::Open(stream) => return stream.next().await.unwrap_or(Err(ModelError::Incomplete)),
            }
        }
    }
}

impl ConnectingResponse {
    async fn next(&mut self) -> ConnectEvent {
        tokio::select! {
            biased;
            Some(wait) = self.waits.recv() => ConnectEvent::Waiting(wait),
            begun = &mut self.stream => ConnectEvent::Begun(begun),
        }
    }
}
