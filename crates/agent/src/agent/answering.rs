//! A model while it is asked and while it answers.

use std::sync::Arc;

use wharf_tools::Pending;

use super::Agent;
use crate::conversation::Conversation;
use crate::offer::Offering;
use crate::provider::{ModelError, ModelEvent, Request, Stream, ToolChoice};

/// An answer on its way. Dropped, nobody listens any more.
pub(super) enum Answering {
    Opening(Pending<'static, Result<Stream, ModelError>>),
    Open(Box<Stream>),
}

impl Answering {
    /// Asks; nothing happens before somebody waits for what comes next.
    pub fn new(agent: &Agent, conversation: Arc<Conversation>, offering: Arc<Offering>) -> Self {
        let (model, effort) = (agent.model.clone(), agent.effort);
        Self::Opening(Box::pin(async move {
            let tools = &offering.definitions;
            let request = Request { conversation: &conversation, tools, tool_choice: ToolChoice::Auto, effort };
            model.stream(request).await
        }))
    }

    /// What comes next. Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> Result<ModelEvent, ModelError> {
        loop {
            match self {
                Self::Opening(opening) => *self = Self::Open(Box::new(opening.await?)),
                // An answer ends with its last event or an error, both of which are the last that anybody waits for.
                Self::Open(stream) => return stream.next().await.unwrap_or(Err(ModelError::Incomplete)),
            }
        }
    }
}
