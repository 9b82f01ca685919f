//! What a run has cost, and what the model said last.

use serde::Serialize;
use wharf_agent::RunEvent;

use crate::chat::Chat;

/// Sums over a run.
pub struct Spent {
    /// `provider/model`.
    pub model: String,
    /// The name the conversation is saved under.
    pub conversation: Option<String>,
    /// What the model said since it was last asked.
    pub text: String,
    pub usage: Usage,
}

/// Tokens and requests, for documents.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Usage {
    pub requests: u32,
    pub input: u64,
    pub output: u64,
    pub cached: u64,
}

impl Spent {
    pub fn new(chat: &Chat<'_>) -> Self {
        let model = chat.chosen().map(|chosen| chosen.name.clone()).unwrap_or_default();
        let conversation = chat.id().map(str::to_owned);
        Self { model, conversation, text: String::new(), usage: Usage::default() }
    }

    pub fn heard(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Asking { request } => {
                self.usage.requests = *request;
                self.text.clear();
            }
            RunEvent::Text(text) => self.text.push_str(text),
            RunEvent::Usage { input, output, cached } => {
                self.usage.input += input;
                self.usage.output += output;
                self.usage.cached += cached;
            }
            _ => {}
        }
    }
}
