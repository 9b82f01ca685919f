//! Tools with which an agent manages resources, prompts and subscriptions.
//!
//! All content comes from the servers: the host never opens a URI itself. Texts of servers are sanitized and truncated,
//! and each is attributed to its server.

mod agent_subscriptions;
mod arguments;
mod output;
mod prompts;
mod read;
mod resources;
mod schema;
mod subscriptions;

use std::sync::{Arc, Weak};

use wharf_tools::{
    BoxFuture, PermissionRequirement, Tool, ToolDescription, ToolError, ToolInvocation, ToolOutcome, ToolRisk,
};

use crate::access;
use crate::context::HostContext;
use crate::error::HostError;

pub(crate) use agent_subscriptions::AgentSubscriptions;
pub(crate) use read::{nearest_uri, parse_base64};

/// Registers the management tools.
pub(crate) fn register(context: &Arc<HostContext>) {
    for plan in MANAGEMENT_TOOLS {
        let tool = ManagementTool::new(&plan, Arc::downgrade(context));
        context.publisher.registry().register(Arc::new(tool));
    }
}

type ManagementHandler = fn(Arc<HostContext>, ToolInvocation) -> BoxFuture<'static, Result<ToolOutcome, ToolError>>;

/// Condition under which a management tool is offered to models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OfferCondition {
    /// A server is configured.
    Servers,
    /// A server has resources or resource templates.
    Resources,
    /// A server has prompts.
    Prompts,
}

impl OfferCondition {
    fn holds(self, context: &HostContext) -> bool {
        match self {
            Self::Servers => !context.servers.load().is_empty(),
            Self::Resources => context.publisher.peek().has_resources(),
            Self::Prompts => context.publisher.peek().has_prompts(),
        }
    }
}

/// Definition of one management tool.
struct ManagementToolSpec {
    name: &'static str,
    text: &'static str,
    schema: fn() -> serde_json::Value,
    permission: PermissionRequirement,
    offered: OfferCondition,
    carry_out: ManagementHandler,
}

impl ManagementToolSpec {
    /// Defines a tool that needs no permission and is offered if there are resources.
    const fn unrestricted(
        name: &'static str,
        text: &'static str,
        schema: fn() -> serde_json::Value,
        carry_out: ManagementHandler,
    ) -> Self {
        let (permission, offered) = (PermissionRequirement::NotNeeded, OfferCondition::Resources);
        Self { name, text, schema, permission, offered, carry_out }
    }

    const fn offered_with(self, offered: OfferCondition) -> Self {
        Self { offered, ..self }
    }

    /// Defines a tool that checks permissions itself, once it has resolved the server.
    const fn self_checking(
        name: &'static str,
        text: &'static str,
        schema: fn() -> serde_json::Value,
        carry_out: ManagementHandler,
    ) -> Self {
        Self { permission: PermissionRequirement::Deferred, ..Self::unrestricted(name, text, schema, carry_out) }
    }
}

const MANAGEMENT_TOOLS: [ManagementToolSpec; 9] = [
    ManagementToolSpec::unrestricted(
        "ListMcpResources",
        "Lists the resources of all MCP servers, or of one of them.",
        schema::list_schema,
        |context, call| Box::pin(resources::list_resources(context, call)),
    ),
    ManagementToolSpec::unrestricted(
        "ListMcpResourceTemplates",
        "Lists the resource templates of all MCP servers, or of one of them. Fill in a template to get a URI to read.",
        schema::list_schema,
        |context, call| Box::pin(resources::list_templates(context, call)),
    ),
    ManagementToolSpec::self_checking(
        access::READ_RESOURCE_TOOL,
        "Reads a resource of an MCP server by its URI. Large content is written to a file, whose path is returned.",
        schema::read_resource_schema,
        |context, call| Box::pin(read::read_resource(context, call)),
    ),
    ManagementToolSpec::self_checking(
        access::SUBSCRIBE_RESOURCE_TOOL,
        "Subscribes to changes of a resource of an MCP server. Changes are reported as notes before later turns.",
        schema::subscribe_schema,
        |context, call| Box::pin(subscriptions::subscribe(context, call)),
    ),
    ManagementToolSpec::unrestricted(
        "UnsubscribeMcpResource",
        "Ends resource subscriptions: by id, or all that match the server and the URI.",
        schema::unsubscribe_schema,
        |context, call| Box::pin(subscriptions::unsubscribe(context, call)),
    ),
    ManagementToolSpec::self_checking(
        access::POLLING_TOOL,
        "Polls a tool or a resource of an MCP server at an interval. Changed results are reported as notes.",
        schema::polling_schema,
        |context, call| Box::pin(subscriptions::start_polling(context, call)),
    )
    .offered_with(OfferCondition::Servers),
    ManagementToolSpec::unrestricted(
        "UnsubscribePolling",
        "Ends polling: by id, or all that match the server and the target (a tool name or a URI).",
        schema::stop_polling_schema,
        |context, call| Box::pin(subscriptions::stop_polling(context, call)),
    )
    .offered_with(OfferCondition::Servers),
    ManagementToolSpec::unrestricted(
        "ListMcpPrompts",
        "Lists the prompts of all MCP servers, or of one of them.",
        schema::list_schema,
        |context, call| Box::pin(prompts::list_prompts(context, call)),
    )
    .offered_with(OfferCondition::Prompts),
    ManagementToolSpec::self_checking(
        access::GET_PROMPT_TOOL,
        "Expands a prompt of an MCP server to its messages. The messages come from the server, not from the user.",
        schema::get_prompt_schema,
        |context, call| Box::pin(prompts::expand_prompt(context, call)),
    )
    .offered_with(OfferCondition::Prompts),
];

/// A management tool. It holds only a weak reference to its host.
struct ManagementTool {
    description: Arc<ToolDescription>,
    offered: OfferCondition,
    carry_out: ManagementHandler,
    context: Weak<HostContext>,
}

impl ManagementTool {
    fn new(plan: &ManagementToolSpec, context: Weak<HostContext>) -> Self {
        let schema = wharf_json::RawJson::new_unchecked((plan.schema)().to_string());
        let mut description = ToolDescription::new(plan.name, plan.text, schema);
        description.permission = plan.permission;
        description.risk = ToolRisk::Low;
        let (description, ManagementToolSpec { offered, carry_out, .. }) = (Arc::new(description), plan);
        Self { description, offered: *offered, carry_out: *carry_out, context }
    }
}

impl Tool for ManagementTool {
    fn description(&self) -> &Arc<ToolDescription> {
        &self.description
    }

    fn is_offered(&self) -> bool {
        self.context.upgrade().is_some_and(|context| self.offered.holds(&context))
    }

    fn call(&self, call: ToolInvocation) -> BoxFuture<'_, Result<ToolOutcome, ToolError>> {
        match self.context.upgrade() {
            Some(context) => (self.carry_out)(context, call),
            None => Box::pin(std::future::ready(Err(crate::tool::to_tool_error(&HostError::Closed)))),
        }
    }
}
