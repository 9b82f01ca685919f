//! Cost of a run, and the model's last text.

use serde::Serialize;
use wharf_agent::RunEvent;

use wharf_terminal::chat::ChatSession;

/// Totals of a run.
pub struct RunTotals {
    /// Model name, as `provider/model`.
    pub model: String,
    /// Id of the saved conversation.
    pub conversation: Option<String>,
    /// Text of the model since the last request.
    pub text: String,
    pub usage: UsageTotals,
}

/// Token and request counts for documents.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct UsageTotals {
    pub requests: u32,
    pub input: u64,
    pub output: u64,
    pub cached: u64,
}

impl RunTotals {
    pub fn new(chat: &ChatSession<'_>) -> Self {
        let model = chat.selected_model().map(|chosen| chosen.name.clone()).unwrap_or_default();
        let conversation = chat.id().map(str::to_owned);
        Self { model, conversation, text: String::new(), usage: UsageTotals::default() }
    }

    pub fn record(&mut self, event: &RunEvent) {
        match event {
            RunEvent::RequestSent { .. } => {
                self.usage.requests += 1;
                self.text.clear();
            }
            RunEvent::Text(text) => self.text.push_str(text),
            RunEvent::Usage { input, output, cached } => self.add(0, *input, *output, *cached),
            RunEvent::Delegated { requests, input, output, cached } => self.add(*requests, *input, *output, *cached),
            _ => {}
        }
    }
    fn add(&mut self, requests: u32, input: u64, output: u64, cached: u64) {
        self.usage.requests += requests;
        self.usage.input += input;
        self.usage.output += output;
        self.usage.cached += cached;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_agent_usage_is_included() {
        let mut totals =
            RunTotals { model: String::new(), conversation: None, text: String::new(), usage: UsageTotals::default() };
        for event in [
            RunEvent::RequestSent { request: 1 },
            RunEvent::Usage { input: 10, output: 2, cached: 1 },
            RunEvent::Delegated { requests: 3, input: 100, output: 20, cached: 10 },
            RunEvent::RequestSent { request: 2 },
            RunEvent::Usage { input: 1000, output: 200, cached: 100 },
        ] {
            totals.record(&event);
        }
        let UsageTotals { requests, input, output, cached } = totals.usage;
        assert_eq!((requests, input, output, cached), (5, 1110, 222, 111));
    }
}
