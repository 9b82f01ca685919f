//! What becomes of a tool's schema on its way through the client: nothing.

use wharf_client::Connection;
use wharf_wire::Raw;

use crate::arguments::arguments_for;
use crate::{Outcome, tour};

/// The tool whose schema is looked at, and the one that takes it back.
const RICH: &str = "json_schema_2020_12_tool";
const ECHO: &str = "json_schema_echo";

/// Reads every schema as far as arguments need it. The server has no tools to call; it waits for somebody to fetch
/// what a schema refers to.
pub async fn read_all(connection: &Connection) -> Outcome {
    let tools = connection.list_tools().await?.items;
    if tools.is_empty() {
        return Err("the server lists no tool".into());
    }
    for tool in tools {
        arguments_for(tool.input_schema.as_ref())?;
    }
    Ok(())
}

/// Sends the rich schema back, byte for byte.
pub async fn echo(connection: &Connection) -> Outcome {
    let tools = connection.list_tools().await?.items;
    let rich = tools.into_iter().find(|tool| tool.name == RICH);
    let schema = rich.and_then(|tool| tool.input_schema).ok_or_else(|| format!("no schema of `{RICH}` was listed"))?;
    let arguments = Raw::parse(format!(r#"{{"schema":{}}}"#, schema.get()))?;
    tour::call(connection, ECHO, &arguments).await
}
