//! Tool definitions, and the result of a tool call.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Content, JsonLimits, View};
use wharf_json::{JsonDecodeError, RawJson};

/// A tool as declared by its server. Every string is untrusted.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    /// Name of the tool.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description of the tool.
    pub description: Option<String>,
    /// Schema of the arguments, byte for byte.
    pub input_schema: Option<RawJson>,
    /// Schema of the structured result, byte for byte.
    pub output_schema: Option<RawJson>,
    /// Behaviour hints; they grant no permission.
    pub annotations: ToolAnnotations,
    /// Support for task-augmented calls (2025-11-25).
    pub task_support: TaskSupport,
    /// The complete definition as received.
    pub raw: RawJson,
}

/// Support for task-augmented calls (2025-11-25; in later revisions the server decides).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// Not supported. The default.
    #[default]
    Forbidden,
    /// Supported.
    Optional,
    /// Mandatory: a plain call is rejected.
    Required,
}

/// Behaviour hints declared by a server; `None` if undeclared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolAnnotations {
    /// Display name; [`ToolDefinition::title`] takes precedence.
    pub title: Option<String>,
    /// The tool does not modify its environment.
    pub read_only_hint: Option<bool>,
    /// The tool may perform destructive updates.
    pub destructive_hint: Option<bool>,
    /// Repeated calls have no additional effect.
    pub idempotent_hint: Option<bool>,
    /// The tool interacts with external systems.
    pub open_world_hint: Option<bool>,
}

impl ToolDefinition {
    /// Returns the display name: the title, the annotations' title, or the name.
    pub fn display_name(&self) -> &str {
        self.title.as_deref().or(self.annotations.title.as_deref()).unwrap_or(&self.name)
    }
}

impl View for ToolDefinition {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            name: String,
            #[serde(default)]
            title: Option<String>,
            #[serde(default)]
            description: Option<String>,
            #[serde(borrow, default)]
            input_schema: Option<&'a RawValue>,
            #[serde(borrow, default)]
            output_schema: Option<&'a RawValue>,
            #[serde(default)]
            annotations: Option<ToolAnnotations>,
            #[serde(borrow, default)]
            execution: Option<&'a RawValue>,
        }
        let shape: Shape = raw.decode(bounds)?;
        if shape.name.is_empty() {
            return Err(JsonDecodeError::Shape(serde::de::Error::custom("the name is empty")));
        }
        Ok(Self {
            name: shape.name,
            title: shape.title,
            description: shape.description,
            input_schema: shape.input_schema.map(|schema| raw.slice_part(schema)),
            output_schema: shape.output_schema.map(|schema| raw.slice_part(schema)),
            annotations: shape.annotations.unwrap_or_default(),
            task_support: shape.execution.map(task_support).unwrap_or_default(),
            raw,
        })
    }
}

fn task_support(execution: &RawValue) -> TaskSupport {
    let execution: serde_json::Value = serde_json::from_str(execution.get()).unwrap_or_default();
    match execution.get("taskSupport").and_then(serde_json::Value::as_str) {
        Some("optional") => TaskSupport::Optional,
        Some("required") => TaskSupport::Required,
        _ => TaskSupport::Forbidden,
    }
}

/// The result of a tool call. An error reported by the tool is also a result.
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// Content blocks in the server's order, unknown kinds included.
    pub content: Vec<Content>,
    /// The content array byte for byte.
    pub content_raw: Option<RawJson>,
    /// Structured data: any JSON value. An explicit `null` differs from an absent field.
    pub structured: Option<RawJson>,
    /// Set if the tool reports a failure.
    pub is_error: bool,
    /// The complete result as received.
    pub raw: RawJson,
}

impl View for ToolResult {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            #[serde(borrow, default)]
            content: Option<&'a RawValue>,
            #[serde(borrow, default, deserialize_with = "deserialize_present")]
            structured_content: Option<&'a RawValue>,
            #[serde(default)]
            is_error: Option<bool>,
        }
        let shape: Shape = raw.decode(bounds)?;
        let blocks: Vec<&RawValue> = match shape.content {
            Some(list) => serde_json::from_str(list.get()).map_err(JsonDecodeError::Shape)?,
            None => Vec::new(),
        };
        Ok(Self {
            content: blocks.into_iter().map(|block| Content::view(raw.slice_part(block))).collect(),
            content_raw: shape.content.map(|list| raw.slice_part(list)),
            structured: shape.structured_content.map(|data| raw.slice_part(data)),
            is_error: shape.is_error.unwrap_or(false),
            raw,
        })
    }
}

/// Distinguishes an explicit `null` from an absent field.
fn deserialize_present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> ToolResult {
        ToolResult::from_raw(RawJson::parse(text.to_owned()).unwrap(), &JsonLimits::default()).unwrap()
    }

    #[test]
    fn structured_null_is_not_absence() {
        assert_eq!(result(r#"{"structuredContent":null}"#).structured.unwrap().as_str(), "null");
        assert!(result("{}").structured.is_none());
        assert!(result(r#"{"isError":true}"#).is_error);
    }

    #[test]
    fn schemas_keep_their_bytes() {
        let text = r#"{"inputSchema":{ "z":1,"a": 12345678901234567890123 },"name":"t","x-unknown":[ ]}"#;
        let tool = ToolDefinition::from_raw(RawJson::parse(text).unwrap(), &JsonLimits::default()).unwrap();
        assert_eq!(tool.input_schema.unwrap().as_str(), r#"{ "z":1,"a": 12345678901234567890123 }"#);
        assert_eq!(tool.raw.as_str(), text);
    }

    #[test]
    fn tool_without_valid_name_is_malformed() {
        for text in ["{}", r#"{"name":""}"#, r#"{"name":7}"#, "7", r#"{"name":"a","annotations":3}"#] {
            assert!(ToolDefinition::from_raw(RawJson::parse(text).unwrap(), &JsonLimits::default()).is_err(), "{text}");
        }
    }
}
