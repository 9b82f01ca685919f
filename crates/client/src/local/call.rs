//! What a tool's handler is given, and what it gives.

use serde_json::json;
use wharf_wire::{Bounds, DecodeError, Raw};

use super::{quoted, written};
use crate::transport::memory::Outbox;

/// One call of a tool.
pub struct ToolCall {
    /// The arguments as they came: a JSON object.
    pub arguments: Raw,
    pub(super) progress: Option<Raw>,
    pub(super) outbox: Outbox,
}

impl ToolCall {
    /// The arguments as a type of the handler's own.
    pub fn decode<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, String> {
        self.arguments.decode(&Bounds::default()).map_err(|error: DecodeError| format!("the arguments: {error}"))
    }

    /// Says how far it is, if the caller wants to know.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        let Some(token) = &self.progress else { return };
        let mut params = json!({ "progressToken": token, "progress": done, "message": message });
        if let Some(total) = total {
            params["total"] = total.into();
        }
        let text = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        self.outbox.send(text.to_string());
    }
}

/// What a tool answers.
#[derive(Debug, Clone)]
pub struct ToolReply(Raw);

impl ToolReply {
    /// One block of text.
    pub fn text(text: impl Into<String>) -> Self {
        let text = quoted(&text.into());
        let parts = [r#"{"content":[{"type":"text","text":"#, &text, r#"}],"resultType":"complete"}"#];
        Self(written(parts.concat()))
    }

    /// Structured data, and its text for whoever reads only that.
    pub fn data(data: &Raw) -> Self {
        let content = [json!({ "type": "text", "text": data.get() })];
        Self::of(&json!({ "content": content, "structuredContent": data, "resultType": "complete" }))
    }

    /// A whole result, as the protocol has it.
    pub fn raw(result: Raw) -> Self {
        Self(result)
    }

    pub(super) fn failure(text: &str) -> Self {
        let content = [json!({ "type": "text", "text": text })];
        Self::of(&json!({ "content": content, "isError": true, "resultType": "complete" }))
    }

    pub(super) fn into_raw(self) -> Raw {
        self.0
    }

    fn of(value: &serde_json::Value) -> Self {
        Self(Raw::of(value).unwrap_or_else(|_| Raw::empty_object()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_answered_as_it_is() {
        for text in ["", "plain", "a \"quoted\" one", "back\\slash", "two\nlines", "\u{1}", "Grüße \u{1f6a2}"] {
            let answer: serde_json::Value = ToolReply::text(text).into_raw().decode(&Bounds::default()).unwrap();
            assert_eq!(answer["content"], json!([{ "type": "text", "text": text }]));
            assert_eq!(answer["resultType"], "complete");
        }
    }
}
