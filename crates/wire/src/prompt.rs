//! Prompt definitions, and the messages of an expanded prompt.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Content, JsonLimits, View};
use wharf_json::{JsonDecodeError, RawJson};

/// A prompt in a server's list. Every string is untrusted.
#[derive(Debug, Clone)]
pub struct PromptDefinition {
    /// Name of the prompt.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description of the prompt.
    pub description: Option<String>,
    /// Arguments of the prompt.
    pub arguments: Vec<PromptArgument>,
    /// The complete entry as received.
    pub raw: RawJson,
}

/// One argument of a prompt; its value is always a string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PromptArgument {
    /// Name of the argument.
    pub name: String,
    /// Description of the argument.
    pub description: Option<String>,
    /// Set if the argument is required.
    pub required: bool,
}

impl View for PromptDefinition {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        struct Shape {
            name: String,
            #[serde(default)]
            title: Option<String>,
            #[serde(default)]
            description: Option<String>,
            #[serde(default)]
            arguments: Option<Vec<PromptArgument>>,
        }
        let Shape { name, title, description, arguments } = raw.decode(bounds)?;
        Ok(Self { name, title, description, arguments: arguments.unwrap_or_default(), raw })
    }
}

/// The result of `prompts/get`.
#[derive(Debug, Clone)]
pub struct PromptResult {
    /// Description of the prompt.
    pub description: Option<String>,
    /// The messages in order.
    pub messages: Vec<PromptMessage>,
    /// The messages array byte for byte.
    pub messages_raw: RawJson,
    /// The complete result as received.
    pub raw: RawJson,
}

/// One message of an expanded prompt.
#[derive(Debug, Clone)]
pub struct PromptMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// Content of the message.
    pub content: Content,
}

impl View for PromptResult {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        struct Shape<'a> {
            #[serde(default)]
            description: Option<String>,
            #[serde(borrow)]
            messages: &'a RawValue,
        }
        #[derive(Deserialize)]
        struct WirePromptMessage<'a> {
            role: String,
            #[serde(borrow)]
            content: &'a RawValue,
        }
        let shape: Shape = raw.decode(bounds)?;
        let messages_raw = raw.slice_part(shape.messages);
        let messages: Vec<WirePromptMessage> = messages_raw.decode_unbounded()?;
        Ok(Self {
            description: shape.description,
            messages: messages
                .into_iter()
                .map(|message| PromptMessage {
                    role: message.role,
                    content: Content::view(messages_raw.slice_part(message.content)),
                })
                .collect(),
            messages_raw,
            raw,
        })
    }
}
