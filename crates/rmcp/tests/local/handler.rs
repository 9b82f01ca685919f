//! A handler whose tools are whatever a test says, with one resource and one prompt.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Implementation, JsonObject, ListPromptsResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, Prompt, PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    Resource, ResourceContents, Role, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use wharf_client::{
    BoxedFuture, CallError, ConnectOptions, Connection, LocalServer, NegotiationMode, RequestOptions, connect_local,
};
use wharf_rmcp::RmcpServer;
use wharf_wire::{Content, RawJson, ToolResult};

pub const NOTE: &str = "note://quay";
/// Reading it panics.
pub const TRAP: &str = "note://trap";
pub const BOTH: [NegotiationMode; 2] = [NegotiationMode::Automatic, NegotiationMode::Handshake];

pub type Context = RequestContext<RoleServer>;
pub type Work = BoxedFuture<Result<CallToolResponse, ErrorData>>;
type Tools = Arc<dyn Fn(CallToolRequestParams, Context) -> Work + Send + Sync>;

pub struct Handler(Tools);

/// A server whose every tool does this.
pub fn server<F>(tools: impl Fn(CallToolRequestParams, Context) -> F + Send + Sync + 'static) -> RmcpServer<Handler>
where
    F: Future<Output = Result<CallToolResponse, ErrorData>> + Send + 'static,
{
    RmcpServer::new(Handler(Arc::new(move |request, context| Box::pin(tools(request, context)))))
}

/// A server whose tools give their argument `text` back.
pub fn echo() -> RmcpServer<Handler> {
    server(|request, _context| async move { Ok(said(text_of(&request))) })
}

pub fn said(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

pub fn text_of(request: &CallToolRequestParams) -> String {
    let text = request.arguments.as_ref().and_then(|arguments| arguments.get("text"));
    text.and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub async fn connected(server: impl LocalServer, negotiation: NegotiationMode) -> Connection {
    let mut options = ConnectOptions::default();
    options.negotiation = negotiation;
    connect_local(server, options).await.unwrap()
}

pub async fn call(connection: &Connection, tool: &str, text: &str) -> Result<ToolResult, CallError> {
    connection.call_tool(tool, &arguments(text), RequestOptions::default()).await
}

pub fn arguments(text: &str) -> RawJson {
    RawJson::from_value(&json!({ "text": text })).unwrap()
}

/// The text of a result that has one block of it.
pub fn told(result: &ToolResult) -> &str {
    match result.content.as_slice() {
        [Content::Text { text, .. }] => text,
        other => panic!("not one block of text: {other:?}"),
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let offered = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts();
        #[expect(deprecated, reason = "the handshake era has logging")]
        let offered = offered.enable_logging().build();
        ServerConfig::new(offered).with_server_info(Implementation::new("handler", "1.0.0"))
    }

    #[expect(deprecated, reason = "the handshake era has logging")]
    async fn set_level(
        &self,
        _request: rmcp::model::SetLevelRequestParams,
        _context: Context,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = JsonObject::from_iter([("type".to_owned(), "object".into())]);
        Ok(ListToolsResult::with_all_items(vec![Tool::new("echo", "Gives back the text.", schema)]))
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        (self.0)(request, context).await
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new(NOTE, "quay")]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        assert_ne!(request.uri, TRAP, "stepped into the trap");
        Ok(ReadResourceResult::new(vec![ResourceContents::text("Mind the gap.", request.uri)]).into())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new("greet", Some("Greets."), None)]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let text = format!("Please {}.", request.name);
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }
}
