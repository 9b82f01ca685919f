//! A small server on the Rust SDK, over stdio, for the tests: two tools, a resource, a prompt.

#![allow(clippy::unwrap_used, reason = "a test peer gives up on the first surprise")]

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Implementation, JsonObject, ListPromptsResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, Prompt, PromptArgument, PromptMessage, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, Role, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt, transport};
use serde_json::{Value, json};

const NOTE: &str = "note://hello";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let service = Peer.serve(transport::stdio()).await.unwrap();
    service.waiting().await.unwrap();
}

struct Peer;

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("rmcp-peer", "1.0.0"))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let echo = schema(json!({"text": {"type": "string"}}), &["text"]);
        let add = schema(json!({"a": {"type": "number"}, "b": {"type": "number"}}), &["a", "b"]);
        Ok(ListToolsResult::with_all_items(vec![
            Tool::new("echo", "Gives back the text.", echo),
            Tool::new("add", "Adds two numbers.", add),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let text = match &*request.name {
            "echo" => string(&arguments, "text")?.to_owned(),
            "add" => (number(&arguments, "a")? + number(&arguments, "b")?).to_string(),
            other => return Err(invalid(format!("no tool {other}"))),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let note = Resource::new(NOTE, "hello").with_mime_type("text/plain");
        Ok(ListResourcesResult::with_all_items(vec![note]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != NOTE {
            return Err(ErrorData::resource_not_found(format!("no resource {}", request.uri), None));
        }
        let contents = ResourceContents::text("Hello from the quay.", NOTE);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let name = PromptArgument::new("name").with_description("Whom to greet.").with_required(true);
        let greet = Prompt::new("greet", Some("Greets somebody."), Some(vec![name]));
        Ok(ListPromptsResult::with_all_items(vec![greet]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != "greet" {
            return Err(invalid(format!("no prompt {}", request.name)));
        }
        let arguments = request.arguments.unwrap_or_default();
        let text = format!("Please greet {}.", string(&arguments, "name")?);
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }
}

fn schema(properties: Value, required: &[&str]) -> JsonObject {
    JsonObject::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), properties),
        ("required".to_owned(), required.into()),
    ])
}

fn string<'a>(arguments: &'a JsonObject, name: &str) -> Result<&'a str, ErrorData> {
    let value = arguments.get(name).and_then(Value::as_str);
    value.ok_or_else(|| invalid(format!("{name} must be a string")))
}

fn number(arguments: &JsonObject, name: &str) -> Result<f64, ErrorData> {
    let value = arguments.get(name).and_then(Value::as_f64);
    value.ok_or_else(|| invalid(format!("{name} must be a number")))
}

fn invalid(message: String) -> ErrorData {
    ErrorData::invalid_params(message, None)
}
