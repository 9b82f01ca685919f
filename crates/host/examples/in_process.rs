//! Registers a server that lives in this process beside any others, and calls its tool by the name a model would use.

#![expect(clippy::print_stdout, reason = "an example talks")]

use std::sync::Arc;

use serde_json::json;
use wharf::spec::{ServerName, UntrustedText};
use wharf::tools::{AllowAllGate, ToolCaller, ToolInvocation};
use wharf::{ClosureServer, Host, RawJson, ToolCall, ToolReply};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::builder()
        // Everything may be called. Leave it out, and rules decide.
        .gate(Arc::new(AllowAllGate))
        .local(ServerName::new("tides")?, tides)
        .start()
        .await?;
    host.wait_until_settled().await;

    let arguments = RawJson::parse(r#"{"port":"Bremen"}"#)?;
    let outcome =
        host.registry().call("mcp__tides__next_high", ToolInvocation::new(arguments, ToolCaller::agent())).await?;
    println!("{}", UntrustedText::new(outcome.text()).multiline());

    host.close().await;
    Ok(())
}

/// Made anew for every connection, so that it comes back when it is lost.
fn tides() -> ClosureServer {
    let schema = json!({ "type": "object", "properties": { "port": { "type": "string" } }, "required": ["port"] });
    ClosureServer::new("tides", "1.0").tool("next_high", "Says when the tide is next high.", schema, next_high)
}

async fn next_high(call: ToolCall) -> Result<ToolReply, String> {
    #[derive(serde::Deserialize)]
    struct Arguments {
        port: String,
    }
    let Arguments { port } = serde_json::from_str(call.arguments.as_str()).map_err(|error| error.to_string())?;
    Ok(ToolReply::text(format!("high water at {port}: 14:32")))
}
