//! Test server on the Rust SDK. It covers every feature a client must support, in both eras, with pagination and the
//! tasks of 2026-07-28. It serves stdio, or Streamable HTTP with `--http`.
//!
//! The SDK supports neither the tasks of 2025-11-25 nor subscriptions to a task.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test peer says where it listens, reads its arguments and panics on errors"
)]
#![allow(deprecated, reason = "logging, sampling, roots and subscribing are to be tested for as long as they work")]

mod catalog;
mod effect_tools;
mod http;
mod input_tools;
mod subscribers;
mod tools;

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt, transport};

use effect_tools::RmcpPeerState;
use subscribers::SubscriberSet;

type RmcpContext = RequestContext<RoleServer>;
type PageRequest = Option<PaginatedRequestParams>;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if std::env::args().any(|argument| argument == "--http") {
        return http::serve(RmcpPeer::default()).await;
    }
    let service = RmcpPeer::default().serve(transport::stdio()).await.unwrap();
    service.waiting().await.unwrap();
}

/// The server; each method delegates to a module. Over HTTP, all instances share their state.
#[derive(Clone, Default)]
struct RmcpPeer {
    audience: Arc<SubscriberSet>,
    work: Arc<RmcpPeerState>,
    tasks: Arc<TaskManager>,
}

impl ServerHandler for RmcpPeer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        let name = Implementation::new("rmcp-peer", "1.0.0").with_title("Quay").with_icons(vec![catalog::icon()]);
        ServerConfig::new(capabilities).with_server_info(name).with_instructions("Ask the harbour master.")
    }

    async fn list_tools(&self, page: PageRequest, _context: RmcpContext) -> Result<ListToolsResult, ErrorData> {
        tools::list(page, self.work.added_tools())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RmcpContext,
    ) -> Result<CallToolResponse, ErrorData> {
        if input_tools::is_input_tool(&request.name) {
            return input_tools::call(request, &context).await;
        }
        effect_tools::call(self, request, context).await
    }

    async fn list_resources(&self, page: PageRequest, _context: RmcpContext) -> Result<ListResourcesResult, ErrorData> {
        catalog::resources(page)
    }

    async fn list_resource_templates(
        &self,
        _page: PageRequest,
        _context: RmcpContext,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(catalog::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RmcpContext,
    ) -> Result<ReadResourceResponse, ErrorData> {
        catalog::read(&request, self.work.counter())
    }

    async fn list_prompts(&self, _page: PageRequest, _context: RmcpContext) -> Result<ListPromptsResult, ErrorData> {
        Ok(catalog::prompts())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RmcpContext,
    ) -> Result<GetPromptResponse, ErrorData> {
        catalog::prompt(&request)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RmcpContext,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(catalog::complete(&request))
    }

    async fn set_level(&self, request: SetLevelRequestParams, _context: RmcpContext) -> Result<(), ErrorData> {
        self.work.set_level(request.level);
        Ok(())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _context: RmcpContext) -> Result<(), ErrorData> {
        self.audience.subscribe(request.uri);
        Ok(())
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _context: RmcpContext) -> Result<(), ErrorData> {
        self.audience.unsubscribe(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.audience.announce_subscription();
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        self.audience.hold_subscription(subscription).await;
        Ok(())
    }

    async fn get_task(&self, request: GetTaskParams, _context: RmcpContext) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _context: RmcpContext) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _context: RmcpContext) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}

fn invalid_params(message: String) -> ErrorData {
    ErrorData::invalid_params(message, None)
}
