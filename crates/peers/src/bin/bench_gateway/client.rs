//! A client on the Rust SDK that uses a gateway as programs do: lists, calls, answers a form, and calls again after a
//! line on its input. The scripts `clients/gateway_*` do the same on other SDKs.

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, FormElicitationCapability, Implementation, JsonObject, ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, RequestContext, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientServiceExt, RoleClient};
use serde_json::json;
use tokio::process::Command;

/// Arguments: `stdio COMMAND ARGUMENT...`, or `http URL TOKEN`.
pub fn run(words: &[String]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let [way, words @ ..] = words else { panic!("stdio COMMAND or http URL TOKEN") };
        let lifecycle =
            ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None };
        let client = if way == "http" {
            let config = StreamableHttpClientTransportConfig::with_uri(words[0].as_str()).auth_header(&words[1]);
            let transport = StreamableHttpClientTransport::with_client(reqwest::Client::new(), config);
            AcceptingClient.serve_with_lifecycle(transport, lifecycle).await.unwrap()
        } else {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            let transport = TokioChildProcess::new(command).unwrap();
            AcceptingClient.serve_with_lifecycle(transport, lifecycle).await.unwrap()
        };
        use_gateway(client).await;
    });
}

async fn use_gateway(client: RunningService<RoleClient, AcceptingClient>) {
    let tools = client.list_all_tools().await.unwrap();
    let tools: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let revision = client.peer_info().map(|info| info.protocol_version.to_string());
    let (call, form) = (call(&client, "s0__note").await, call(&client, "s0__ask").await);
    println!("{}", json!({"revision": revision, "tools": tools, "call": call, "form": form}));
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    println!("{}", json!({"again": self::call(&client, "s0__note").await}));
    client.cancel().await.unwrap();
}

async fn call(client: &RunningService<RoleClient, AcceptingClient>, tool: &'static str) -> String {
    let arguments = JsonObject::from_iter([("text".to_owned(), "ahoy".into())]);
    let result = client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.unwrap();
    serde_json::to_value(&result).unwrap()["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Accepts every form.
#[derive(Clone)]
struct AcceptingClient;

impl ClientHandler for AcceptingClient {
    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, rmcp::ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"text": "ahoy"})))
    }

    fn get_info(&self) -> ClientConfig {
        let mut forms = ElicitationCapability::new();
        forms.form = Some(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(forms);
        ClientConfig::new(capabilities, Implementation::new("rmcp", "3.8"))
    }
}
