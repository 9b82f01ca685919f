//! Benchmark of this client with an in-process server: the cost of a call without a pipe.
//!
//! The figures include the server's work, which for the other clients happens in a separate process.

#![allow(clippy::unwrap_used, reason = "a benchmark panics on errors")]

use std::hint::black_box;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Deserialize;
use serde_json::{Value, json};
use wharf_client::{ClosureServer, ConnectOptions, Connection, RequestOptions, ToolReply, connect_local};
use wharf_peers::{BenchOptions, LocalServerKind, block_on, run_closed_loop};
use wharf_rmcp::RmcpServer;
use wharf_wire::RawJson;

fn main() {
    let options = BenchOptions::from_args();
    block_on(options.flavour, measure(options));
}

async fn measure(options: BenchOptions) {
    let (name, connection) = open(options.local).await;
    let arguments = RawJson::from_value(&json!({ "text": options.text() })).unwrap();
    let caller = connection.clone();
    let report = run_closed_loop(name, &options, move || {
        let (connection, arguments) = (caller.clone(), arguments.clone());
        async move {
            let options = RequestOptions::default().progress(|_| ());
            black_box(connection.call_tool_raw("echo", &arguments, options).await.unwrap());
        }
    })
    .await;
    connection.close().await;
    report.print();
}

async fn open(local: LocalServerKind) -> (&'static str, Connection) {
    let options = ConnectOptions::default();
    match local {
        LocalServerKind::Closure => ("wharf local", connect_local(closures(), options).await.unwrap()),
        LocalServerKind::Rmcp => ("wharf local rmcp", connect_local(RmcpServer::new(RmcpEcho), options).await.unwrap()),
    }
}

fn closures() -> ClosureServer {
    #[derive(Deserialize)]
    struct EchoArguments {
        text: String,
    }
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    ClosureServer::new("echo", "1.0.0").tool("echo", "Gives back the text.", schema, |call| async move {
        let EchoArguments { text } = call.decode()?;
        Ok(ToolReply::text(text))
    })
}

struct RmcpEcho;

impl ServerHandler for RmcpEcho {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(Value::String(text)) = request.arguments.and_then(|mut arguments| arguments.remove("text")) else {
            return Err(ErrorData::invalid_params("text must be a string", None));
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}
