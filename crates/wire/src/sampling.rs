//! Sampling requests, and the roots offered to a server.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{JsonLimits, View};
use wharf_json::{JsonDecodeError, RawJson};

/// A `sampling/createMessage` request. Every part is untrusted.
#[derive(Debug, Clone)]
pub struct SamplingRequest {
    /// The conversation: a raw array.
    pub messages: RawJson,
    /// System prompt for the model.
    pub system_prompt: Option<String>,
    /// Maximum number of tokens to generate; must be respected.
    pub max_tokens: u64,
    /// The request's `tools`, or its `toolChoice` if it has no `tools`. Only for clients that declare tool support.
    pub tools: Option<RawJson>,
    /// The complete request as received: preferences, stop sequences, temperature, tool choice.
    pub raw: RawJson,
}

impl View for SamplingRequest {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            #[serde(borrow)]
            messages: &'a RawValue,
            #[serde(default)]
            system_prompt: Option<String>,
            max_tokens: u64,
            #[serde(borrow, default)]
            tools: Option<&'a RawValue>,
            #[serde(borrow, default)]
            tool_choice: Option<&'a RawValue>,
        }
        let shape: Shape = raw.decode(bounds)?;
        if !shape.messages.get().starts_with('[') {
            return Err(JsonDecodeError::Shape(serde::de::Error::custom("`messages` is not an array")));
        }
        // A `toolChoice` without `tools` still requires tool support.
        let tools = shape.tools.or(shape.tool_choice).map(|tools| raw.slice_part(tools));
        let messages = raw.slice_part(shape.messages);
        Ok(Self { messages, system_prompt: shape.system_prompt, max_tokens: shape.max_tokens, tools, raw })
    }
}

/// A directory a server may work in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Root {
    /// A `file://` URI.
    pub uri: String,
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_fields_are_checked() {
        let view =
            |text: &str| SamplingRequest::from_raw(RawJson::parse(text.to_owned()).unwrap(), &JsonLimits::default());
        let found = view(r#"{"messages":[],"maxTokens":7,"toolChoice":{"mode":"none"}}"#).unwrap();
        assert_eq!((found.max_tokens, found.tools.is_some()), (7, true));
        assert!(view(r#"{"messages":{},"maxTokens":7}"#).is_err());
        assert!(view(r#"{"messages":[]}"#).is_err());
        assert!(view(r#"{"messages":[],"maxTokens":-1}"#).is_err());
    }
}
