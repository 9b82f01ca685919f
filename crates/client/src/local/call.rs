//! Arguments and results of a tool handler.

use serde_json::json;
use wharf_wire::{JsonDecodeError, JsonLimits, RawJson};

use super::{json_string, raw_from_json};
use crate::transport::memory::ClientSender;

/// One call of a tool.
pub struct ToolCall {
    /// The arguments as received: a JSON object.
    pub arguments: RawJson,
    pub(super) progress: Option<RawJson>,
    pub(super) outbox: ClientSender,
}

impl ToolCall {
    /// Decodes the arguments.
    ///
    /// # Errors
    ///
    /// A message for the caller if the arguments do not fit the type.
    pub fn decode<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, String> {
        self.arguments
            .decode(&JsonLimits::default())
            .map_err(|error: JsonDecodeError| format!("invalid arguments: {error}"))
    }

    /// Reports progress, if the caller asked for it.
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

/// The result of a tool.
#[derive(Debug, Clone)]
pub struct ToolReply(RawJson);

impl ToolReply {
    /// Creates a result with one block of text.
    pub fn text(text: impl Into<String>) -> Self {
        let text = json_string(&text.into());
        let parts = [r#"{"content":[{"type":"text","text":"#, &text, r#"}],"resultType":"complete"}"#];
        Self(raw_from_json(parts.concat()))
    }

    /// Creates a result of structured data, with its JSON text for clients that read only text.
    pub fn data(data: &RawJson) -> Self {
        let content = [json!({ "type": "text", "text": data.as_str() })];
        Self::from_value(&json!({ "content": content, "structuredContent": data, "resultType": "complete" }))
    }

    /// Creates a result from a complete protocol object.
    pub fn raw(result: RawJson) -> Self {
        Self(result)
    }

    pub(super) fn failure(text: &str) -> Self {
        let content = [json!({ "type": "text", "text": text })];
        Self::from_value(&json!({ "content": content, "isError": true, "resultType": "complete" }))
    }

    pub(super) fn into_raw(self) -> RawJson {
        self.0
    }

    fn from_value(value: &serde_json::Value) -> Self {
        Self(RawJson::from_value(value).unwrap_or_else(|_| RawJson::empty_object()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reply_preserves_any_text() {
        for text in ["", "plain", "a \"quoted\" one", "back\\slash", "two\nlines", "\u{1}", "Grüße \u{1f6a2}"] {
            let answer: serde_json::Value = ToolReply::text(text).into_raw().decode(&JsonLimits::default()).unwrap();
            assert_eq!(answer["content"], json!([{ "type": "text", "text": text }]));
            assert_eq!(answer["resultType"], "complete");
        }
    }
}
