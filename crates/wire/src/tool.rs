//! Tools as a server describes them, and what calling one gives.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Bounds, Content, View};
use wharf_json::{DecodeError, Raw};

/// A tool as its server describes it. Every string is untrusted.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    /// What the server calls it.
    pub name: String,
    /// What people should see instead.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// The schema of its arguments, byte for byte.
    pub input_schema: Option<Raw>,
    /// The schema of its structured result, byte for byte.
    pub output_schema: Option<Raw>,
    /// Hints; they grant nothing.
    pub annotations: ToolAnnotations,
    /// Whether a call of it can be made a task (2025-11-25).
    pub task_support: TaskSupport,
    /// The whole definition as it came.
    pub raw: Raw,
}

/// Whether a call of a tool can be made a task (2025-11-25; since then the server decides by itself).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// It cannot; also what a tool that says nothing has.
    #[default]
    Forbidden,
    /// It can.
    Optional,
    /// It must be: a plain call is refused.
    Required,
}

/// What a server claims of a tool's behaviour, `None` where it claims nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolAnnotations {
    /// A name for people; [`ToolDefinition::title`] goes before.
    pub title: Option<String>,
    /// Changes nothing.
    pub read_only_hint: Option<bool>,
    /// May destroy something.
    pub destructive_hint: Option<bool>,
    /// Calling it again changes nothing more.
    pub idempotent_hint: Option<bool>,
    /// Reaches into the world outside.
    pub open_world_hint: Option<bool>,
}

impl ToolDefinition {
    /// What to show a person: title, the annotations' title, or the name.
    pub fn display_name(&self) -> &str {
        self.title.as_deref().or(self.annotations.title.as_deref()).unwrap_or(&self.name)
    }
}

impl View for ToolDefinition {
    fn view(raw: Raw, bounds: &Bounds) -> Result<Self, DecodeError> {
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
            return Err(DecodeError::Shape(serde::de::Error::custom("the name is empty")));
        }
        Ok(Self {
            name: shape.name,
            title: shape.title,
            description: shape.description,
            input_schema: shape.input_schema.map(|schema| raw.part(schema)),
            output_schema: shape.output_schema.map(|schema| raw.part(schema)),
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

/// What a tool answered. An error the tool reports is an answer too.
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// The blocks in the server's order, unknown kinds included.
    pub content: Vec<Content>,
    /// The content array byte for byte.
    pub content_raw: Option<Raw>,
    /// Structured data: any JSON value; a present `null` is not an absent one.
    pub structured: Option<Raw>,
    /// The tool says it failed.
    pub is_error: bool,
    /// The whole result as it came.
    pub raw: Raw,
}

impl View for ToolResult {
    fn view(raw: Raw, bounds: &Bounds) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            #[serde(borrow, default)]
            content: Option<&'a RawValue>,
            #[serde(borrow, default, deserialize_with = "present")]
            structured_content: Option<&'a RawValue>,
            #[serde(default)]
            is_error: Option<bool>,
        }
        let shape: Shape = raw.decode(bounds)?;
        let blocks: Vec<&RawValue> = match shape.content {
            Some(list) => serde_json::from_str(list.get()).map_err(DecodeError::Shape)?,
            None => Vec::new(),
        };
        Ok(Self {
            content: blocks.into_iter().map(|block| Content::view(raw.part(block))).collect(),
            content_raw: shape.content.map(|list| raw.part(list)),
            structured: shape.structured_content.map(|data| raw.part(data)),
            is_error: shape.is_error.unwrap_or(false),
            raw,
        })
    }
}

/// Keeps a `null` that is there apart from a field that is not.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> ToolResult {
        ToolResult::view(Raw::parse(text.to_owned()).unwrap(), &Bounds::default()).unwrap()
    }

    #[test]
    fn structured_null_is_not_absence() {
        assert_eq!(result(r#"{"structuredContent":null}"#).structured.unwrap().get(), "null");
        assert!(result("{}").structured.is_none());
        assert!(result(r#"{"isError":true}"#).is_error);
    }

    #[test]
    fn schemas_keep_their_bytes() {
        let text = r#"{"inputSchema":{ "z":1,"a": 12345678901234567890123 },"name":"t","x-unknown":[ ]}"#;
        let tool = ToolDefinition::view(Raw::parse(text).unwrap(), &Bounds::default()).unwrap();
        assert_eq!(tool.input_schema.unwrap().get(), r#"{ "z":1,"a": 12345678901234567890123 }"#);
        assert_eq!(tool.raw.get(), text);
    }

    #[test]
    fn a_tool_without_a_proper_name_is_malformed() {
        for text in ["{}", r#"{"name":""}"#, r#"{"name":7}"#, "7", r#"{"name":"a","annotations":3}"#] {
            assert!(ToolDefinition::view(Raw::parse(text).unwrap(), &Bounds::default()).is_err(), "{text}");
        }
    }
}
