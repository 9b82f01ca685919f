//! A model while it is asked and while it answers.

use std::sync::Arc;

use tokio::sync::mpsc;
use wharf_tools::Pending;

use super::Agent;
use crate::conversation::Conversation;
use crate::offer::Offering;
use crate::provider::{ModelError, ModelEvent, Request, Stream, ToolChoice};

/// An answer on its way. Dropped, nobody listens any more.
pub(super) enum Answering {
    Opening(Opening),
    Open(Box<Stream>),
}

/// An answer that has not begun.
pub(super) struct Opening {
    stream: Pending<'static, Result<Box<Stream>, ModelError>>,
    /// What the model has to wait for. As many as it is asked again, which is a few times.
    waits: mpsc::UnboundedReceiver<ModelEvent>,
}

/// What can happen to an answer that has not begun.
enum Opened {
    Waiting(ModelEvent),
    Begun(Result<Box<Stream>, ModelError>),
}

impl Answering {
    /// Asks; nothing happens before somebody waits for what comes next.
    pub fn new(agent: &Agent, conversation: Arc<Conversation>, offering: Arc<Offering>) -> Self {
        let (model, effort) = (agent.model.clone(), agent.effort);
        let (sender, waits) = mpsc::unbounded_channel();
        let stream = Box::pin(async move {
            let tools = &offering.definitions;
            let request = Request { conversation: &conversation, tools, tool_choice: ToolChoice::Auto, effort };
            // Nobody need listen.
            model.stream_telling(request, |wait| drop(sender.send(wait))).await.map(Box::new)
        });
        Self::Opening(Opening { stream, waits })
    }

    /// What comes next. Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> Result<ModelEvent, ModelError> {
        loop {
            match self {
                Self::Opening(opening) => match opening.next().await {
                    Opened::Waiting(wait) => return Ok(wait),
                    Opened::Begun(stream) => *self = Self::Open(stream?),
                },
                // An answer ends with its last event or an error, both of which are the last that anybody waits for.
                Self::Open(stream) => return stream.next().await.unwrap_or(Err(ModelError::Incomplete)),
            }
        }
    }
}

impl Opening {
    async fn next(&mut self) -> Opened {
        tokio::select! {
            biased;
            Some(wait) = self.waits.recv() => Opened::Waiting(wait),
            begun = &mut self.stream => Opened::Begun(begun),
        }
    }
}
