//! Checks that tool schemas pass through the client unchanged.

use wharf_client::Connection;
use wharf_wire::RawJson;

use crate::arguments::arguments_for;
use crate::{ExerciseResult, full_usage};

/// The tool whose schema is echoed, and the tool that receives it.
const SOURCE_TOOL: &str = "json_schema_2020_12_tool";
const ECHO_TOOL: &str = "json_schema_echo";

/// Decodes every schema as far as generating arguments requires, and calls no tool. The suite checks that the client
/// does not fetch the references in a schema.
pub async fn decode_schemas(connection: &Connection) -> ExerciseResult {
    let tools = connection.list_tools().await?.items;
    if tools.is_empty() {
        return Err("the server lists no tools".into());
    }
    for tool in tools {
        arguments_for(tool.input_schema.as_ref())?;
    }
    Ok(())
}

/// Sends the schema back byte for byte.
pub async fn echo_schema(connection: &Connection) -> ExerciseResult {
    let tools = connection.list_tools().await?.items;
    let rich = tools.into_iter().find(|tool| tool.name == SOURCE_TOOL);
    let schema =
        rich.and_then(|tool| tool.input_schema).ok_or_else(|| format!("no schema listed for `{SOURCE_TOOL}`"))?;
    let arguments = RawJson::parse(format!(r#"{{"schema":{}}}"#, schema.as_str()))?;
    full_usage::call_tool(connection, ECHO_TOOL, &arguments).await
}
