//! Uses every capability of a server, as a host does: lists tools, resources and prompts, then uses each entry.

use wharf_client::{Connection, RequestOptions};
use wharf_spec::UntrustedText;
use wharf_wire::{PromptDefinition, RawJson, ToolDefinition};

use crate::ExerciseResult;
use crate::arguments::arguments_for;

/// Calls all tools, reads all resources and expands all prompts. Stops at the first failure.
pub async fn use_everything(connection: &Connection) -> ExerciseResult {
    connection.ping(RequestOptions::default()).await?;
    let offered = &connection.facts().capabilities;
    if offered.tools {
        call_tools(connection).await?;
    }
    if offered.resources {
        read_resources(connection).await?;
    }
    if offered.prompts {
        expand_prompts(connection).await?;
    }
    Ok(())
}

/// Calls a tool. A tool result marked as error is a failure.
pub async fn call_tool(connection: &Connection, name: &str, arguments: &RawJson) -> ExerciseResult {
    let result = connection.call_tool(name, arguments, RequestOptions::default()).await;
    let result = result.map_err(|error| format!("tool {}: {error}", quote(name)))?;
    if result.is_error {
        return Err(format!("tool {} failed: {}", quote(name), quote(result.raw.as_str())).into());
    }
    Ok(())
}

async fn call_tools(connection: &Connection) -> ExerciseResult {
    for ToolDefinition { name, input_schema, .. } in connection.list_tools().await?.items {
        let arguments = arguments_for(input_schema.as_ref())?;
        call_tool(connection, &name, &arguments).await?;
    }
    Ok(())
}

async fn read_resources(connection: &Connection) -> ExerciseResult {
    for resource in connection.list_resources().await?.items {
        let read = connection.read_resource(&resource.uri, RequestOptions::default()).await;
        read.map_err(|error| format!("resource {}: {error}", quote(&resource.uri)))?;
    }
    connection.list_templates().await?;
    Ok(())
}

async fn expand_prompts(connection: &Connection) -> ExerciseResult {
    for PromptDefinition { name, arguments, .. } in connection.list_prompts().await?.items {
        let arguments: Vec<_> = arguments.into_iter().map(|argument| (argument.name, "wharf".to_owned())).collect();
        let expanded = connection.get_prompt(&name, &arguments, RequestOptions::default()).await;
        expanded.map_err(|error| format!("prompt {}: {error}", quote(&name)))?;
    }
    Ok(())
}

fn quote(text: &str) -> String {
    format!("`{}`", UntrustedText::new(text).truncate(200))
}
