//! Server metadata from the handshake or from `server/discover`.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{JsonLimits, View};
use wharf_json::{JsonDecodeError, RawJson, object_members};

/// Capabilities declared by a server. Methods of an undeclared group are never called.
#[derive(Debug, Clone, Default)]
pub struct ServerCapabilities {
    /// Supports listing and calling tools.
    pub tools: bool,
    /// Notifies of changes to the tool list.
    pub tools_list_changed: bool,
    /// Supports listing and reading resources.
    pub resources: bool,
    /// Notifies of changes to the resource list.
    pub resources_list_changed: bool,
    /// Supports subscriptions to single resources.
    pub resources_subscribe: bool,
    /// Supports listing and expanding prompts.
    pub prompts: bool,
    /// Notifies of changes to the prompt list.
    pub prompts_list_changed: bool,
    /// Supports argument completion.
    pub completions: bool,
    /// Sends log messages.
    pub logging: bool,
    /// Supports task-augmented tool calls (2025-11-25; an extension in later revisions).
    pub tasks: bool,
    /// Ids of the declared extensions.
    pub extensions: Vec<String>,
    /// The complete object as received, with extensions and experimental capabilities.
    pub raw: Option<RawJson>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct WireCapabilityGroup {
    list_changed: bool,
    subscribe: bool,
}

/// Reports whether `requests.tools.call` is declared (2025-11-25, basic/utilities/tasks). A malformed value means no.
fn supports_task_calls(tasks: &RawValue) -> bool {
    let tasks: serde_json::Value = serde_json::from_str(tasks.get()).unwrap_or_default();
    tasks.pointer("/requests/tools/call").is_some_and(serde_json::Value::is_object)
}

/// Returns the extensions declared with a settings object, as required; `{}` is sufficient.
fn extension_ids(object: &RawJson, bounds: &JsonLimits) -> Result<Vec<String>, JsonDecodeError> {
    let declared = object_members(object, bounds)?.into_iter().filter(|(_, settings)| settings.is_object());
    Ok(declared.map(|(name, _)| name.into_owned()).collect())
}

impl ServerCapabilities {
    /// Reports whether the server declares this extension.
    pub fn has_extension(&self, id: &str) -> bool {
        self.extensions.iter().any(|extension| extension == id)
    }
}

impl View for ServerCapabilities {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Shape<'a> {
            tools: Option<WireCapabilityGroup>,
            resources: Option<WireCapabilityGroup>,
            prompts: Option<WireCapabilityGroup>,
            #[serde(borrow)]
            completions: Option<&'a RawValue>,
            #[serde(borrow)]
            logging: Option<&'a RawValue>,
            #[serde(borrow)]
            tasks: Option<&'a RawValue>,
            #[serde(borrow)]
            extensions: Option<&'a RawValue>,
        }
        let Shape { tools, resources, prompts, completions, logging, tasks, extensions } = raw.decode(bounds)?;
        let extensions = extensions.map(|extensions| raw.slice_part(extensions)).filter(RawJson::is_object);
        let extensions =
            extensions.map(|extensions| extension_ids(&extensions, bounds)).transpose()?.unwrap_or_default();
        let changes = |group: &Option<WireCapabilityGroup>| group.as_ref().is_some_and(|group| group.list_changed);
        Ok(Self {
            tools: tools.is_some(),
            tools_list_changed: changes(&tools),
            resources: resources.is_some(),
            resources_list_changed: changes(&resources),
            resources_subscribe: resources.as_ref().is_some_and(|group| group.subscribe),
            prompts: prompts.is_some(),
            prompts_list_changed: changes(&prompts),
            completions: completions.is_some(),
            logging: logging.is_some(),
            tasks: tasks.is_some_and(supports_task_calls),
            extensions,
            raw: Some(raw),
        })
    }
}

/// Name and version of a program. Self-reported: for display only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Implementation {
    /// Name of the program.
    pub name: String,
    /// Version of the program; may be empty.
    pub version: String,
    /// Display name.
    pub title: Option<String>,
}

/// The result of `initialize`.
#[derive(Debug, Clone)]
pub struct InitializeResult {
    /// The revision chosen by the server, as received.
    pub protocol_version: String,
    /// Declared capabilities.
    pub capabilities: ServerCapabilities,
    /// Name and version of the server.
    pub server_info: Option<Implementation>,
    /// Instructions for the model: untrusted text.
    pub instructions: Option<String>,
    /// The complete result as received.
    pub raw: RawJson,
}

impl View for InitializeResult {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            protocol_version: String,
            #[serde(borrow, default)]
            capabilities: Option<&'a RawValue>,
            #[serde(default)]
            server_info: Option<Implementation>,
            #[serde(default)]
            instructions: Option<String>,
        }
        let Shape { protocol_version, capabilities, server_info, instructions } = raw.decode(bounds)?;
        let capabilities = read_capabilities(&raw, capabilities, bounds)?;
        Ok(Self { protocol_version, capabilities, server_info, instructions, raw })
    }
}

/// The result of `server/discover`.
#[derive(Debug, Clone)]
pub struct DiscoverResult {
    /// Declared result type; `complete` if missing.
    pub result_type: String,
    /// Supported revisions, as received.
    pub supported_versions: Vec<String>,
    /// Declared capabilities.
    pub capabilities: ServerCapabilities,
    /// Name and version of the server, from `_meta` or, for older servers, from the body.
    pub server_info: Option<Implementation>,
    /// Instructions for the model: untrusted text.
    pub instructions: Option<String>,
    /// The complete result as received.
    pub raw: RawJson,
}

impl View for DiscoverResult {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        struct WireDiscoverMeta {
            #[serde(rename = "io.modelcontextprotocol/serverInfo", default)]
            server_info: Option<Implementation>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            #[serde(default)]
            result_type: Option<String>,
            supported_versions: Vec<String>,
            #[serde(borrow, default)]
            capabilities: Option<&'a RawValue>,
            #[serde(rename = "_meta", default)]
            meta: Option<WireDiscoverMeta>,
            #[serde(default)]
            server_info: Option<Implementation>,
            #[serde(default)]
            instructions: Option<String>,
        }
        let shape: Shape = raw.decode(bounds)?;
        Ok(Self {
            result_type: shape.result_type.unwrap_or_else(|| "complete".to_owned()),
            supported_versions: shape.supported_versions,
            capabilities: read_capabilities(&raw, shape.capabilities, bounds)?,
            server_info: shape.meta.and_then(|meta| meta.server_info).or(shape.server_info),
            instructions: shape.instructions,
            raw,
        })
    }
}

fn read_capabilities(
    raw: &RawJson,
    part: Option<&RawValue>,
    bounds: &JsonLimits,
) -> Result<ServerCapabilities, JsonDecodeError> {
    part.map_or_else(
        || Ok(ServerCapabilities::default()),
        |part| ServerCapabilities::from_raw(raw.slice_part(part), bounds),
    )
}

/// The `data` of an "unsupported protocol version" error.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct UnsupportedRevision {
    /// Revisions the server supports.
    pub supported: Vec<String>,
}

impl View for UnsupportedRevision {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        raw.decode(bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_info_is_read_from_either_place() {
        for text in [
            r#"{"supportedVersions":["2026-07-28"],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":""}}}"#,
            r#"{"supportedVersions":["2026-07-28"],"serverInfo":{"name":"n"}}"#,
        ] {
            let found = DiscoverResult::from_raw(RawJson::parse(text).unwrap(), &JsonLimits::default()).unwrap();
            assert_eq!(found.server_info.unwrap().name, "n");
        }
        assert!(DiscoverResult::from_raw(RawJson::empty_object(), &JsonLimits::default()).is_err());
    }

    #[test]
    fn only_declared_capabilities_are_set() {
        let tasks = r#"{"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}"#;
        assert!(ServerCapabilities::from_raw(RawJson::parse(tasks).unwrap(), &JsonLimits::default()).unwrap().tasks);
        let text = r#"{"tools":{},"resources":{"subscribe":true},"logging":{},"tasks":7,"extensions":{"x/y":{}}}"#;
        let found = ServerCapabilities::from_raw(RawJson::parse(text).unwrap(), &JsonLimits::default()).unwrap();
        assert!(found.tools && !found.tools_list_changed && found.resources_subscribe && found.logging);
        assert!(!found.prompts && !found.completions && !found.tasks && found.has_extension("x/y"));
        assert_eq!(found.raw.unwrap().as_str(), text);
    }
}
