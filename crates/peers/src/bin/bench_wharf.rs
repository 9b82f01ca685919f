//! Benchmark of this client over stdio, over Streamable HTTP (`--http`) or with an in-process server (`--local`), with
//! deadline, progress, `_meta` and the `resultType` check enabled.
//!
//! The figures of an in-process server include its work, which otherwise happens in a separate process.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark reads its environment and panics on errors"
)]

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Deserialize;
use serde_json::{Value, json};
use wharf_auth::{Account, AccountKey, AccountOptions, FileVault};
use wharf_client::{
    Authorizer, ClosureServer, ConnectOptions, Connection, GuardProgram, Tap, ToolReply, connect, connect_http,
    connect_local,
};
use wharf_peers::{
    BenchOptions, HttpEchoServer, LastSentMessage, LocalServerKind, block_on, measure_wharf, print_call_template,
};
use wharf_rmcp::RmcpServer;
use wharf_spec::{Environment, HttpSpec, StdioSpec};

fn main() {
    let options = BenchOptions::from_args();
    block_on(options.flavour, async move {
        if options.print_template { print_template(options).await } else { measure(options).await }
    });
}

async fn measure(options: BenchOptions) {
    let server = (options.http && options.local.is_none()).then(|| HttpEchoServer::start(&options));
    let connection = open(&options, server.as_ref(), None).await;
    let name = match options.local {
        Some(LocalServerKind::Closure) => "wharf local",
        Some(LocalServerKind::Rmcp) => "wharf local rmcp",
        None if options.account => "wharf with an account",
        None => "wharf",
    };
    let report = measure_wharf(name, &connection, &options).await;
    connection.close().await;
    match server {
        Some(server) => report.with_server_counts(server.stop()).print(),
        None => report.print(),
    }
}

async fn print_template(mut options: BenchOptions) {
    let echo = if options.http { "bench-http-echo" } else { "bench-echo" };
    options.server = std::env::current_exe().unwrap().with_file_name(echo);
    let server = options.http.then(|| HttpEchoServer::start(&options));
    let tap = Arc::new(LastSentMessage::default());
    print_call_template(open(&options, server.as_ref(), Some(tap.clone())).await, &tap).await;
    server.map(HttpEchoServer::stop);
}

async fn open(options: &BenchOptions, server: Option<&HttpEchoServer>, tap: Option<Arc<dyn Tap>>) -> Connection {
    let mut with = ConnectOptions::default();
    with.tap = tap;
    match (options.local, server) {
        (Some(LocalServerKind::Closure), _) => connect_local(closures(), with).await.unwrap(),
        (Some(LocalServerKind::Rmcp), _) => connect_local(RmcpServer::new(RmcpEcho), with).await.unwrap(),
        (None, Some(server)) => {
            with.authorizer = options.account.then(|| account(server));
            connect_http(&HttpSpec::new(server.url.parse().unwrap()), with).await.unwrap()
        }
        (None, None) => {
            with.surroundings =
                Environment { env: std::env::vars_os().collect(), cwd: std::env::current_dir().unwrap() };
            // By path: under valgrind, `/proc/self/exe` is valgrind.
            with.guard = GuardProgram::At(std::env::current_exe().unwrap());
            let program = options.server.clone().into();
            connect(&StdioSpec { program, ..StdioSpec::default() }, with).await.unwrap()
        }
    }
}

/// Returns an account without a login, backed by a file that does not exist.
fn account(server: &HttpEchoServer) -> Arc<dyn Authorizer> {
    let vault = Arc::new(FileVault::new(std::env::temp_dir().join(format!("wharf-bench-{}.json", std::process::id()))));
    let key = AccountKey { server: "bench".to_owned(), account: String::new() };
    Arc::new(Account::new(AccountOptions::new(key, server.url.parse().unwrap(), vault)))
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
