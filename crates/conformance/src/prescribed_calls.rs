//! Tool calls prescribed by the suite, which compares their headers with their arguments.

use serde::Deserialize;
use serde_json::value::RawValue;
use wharf_client::Connection;
use wharf_wire::RawJson;

use crate::{ExerciseResult, full_usage};

#[derive(Deserialize)]
struct CallsContext<'a> {
    #[serde(borrow, rename = "toolCalls")]
    tool_calls: Vec<PrescribedCall<'a>>,
}

#[derive(Deserialize)]
struct PrescribedCall<'a> {
    name: String,
    /// Raw, so that the arguments are sent byte for byte as given.
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// Makes the prescribed calls in order, without listing tools first. The client decides by itself whether to look up a
/// tool's schema before the call.
pub async fn make_prescribed_calls(connection: &Connection, context: Option<&str>) -> ExerciseResult {
    let context = context.ok_or("MCP_CONFORMANCE_CONTEXT is missing")?;
    let CallsContext { tool_calls } =
        serde_json::from_str(context).map_err(|error| format!("invalid MCP_CONFORMANCE_CONTEXT: {error}"))?;
    for PrescribedCall { name, arguments } in tool_calls {
        let arguments = RawJson::parse(arguments.get().to_owned())?;
        full_usage::call_tool(connection, &name, &arguments).await?;
    }
    Ok(())
}
