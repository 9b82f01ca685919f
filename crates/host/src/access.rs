//! Permission checks for server operations other than tool calls: reading or subscribing to resources, and prompts.
//!
//! A rule that denies the whole server covers all of them. A URI that the server lists, or that matches one of its
//! listed templates, needs no permission. Any other URI was chosen by a model and requires a prompt.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use wharf_json::{RawJson, object_members};
use wharf_tools::{
    CallRefusal, CallSubject, CallerConsent, GatedCall, PermissionRequirement, PermissionSource, RefusalReason,
    ToolCaller, ToolDescription, ToolRisk,
};

use crate::call::CallOptions;
use crate::catalog::{ListName, Section};
use crate::context::HostContext;
use crate::error::HostError;
use crate::server::Server;
use crate::uri_template::matches_any;

/// Tool names under which permission rules refer to resources and prompts.
pub(crate) const READ_RESOURCE_TOOL: &str = "ReadMcpResource";
pub(crate) const SUBSCRIBE_RESOURCE_TOOL: &str = "SubscribeMcpResource";
pub(crate) const POLLING_TOOL: &str = "SubscribePolling";
pub(crate) const GET_PROMPT_TOOL: &str = "GetMcpPrompt";

/// Prompt reason for an unlisted URI.
const UNLISTED_URI_REASON: &str = "the server lists neither this URI nor a matching template";

/// A resource or prompt operation to be checked by the gate.
#[derive(Clone, Copy)]
pub(crate) struct ServerAccess<'a> {
    /// Tool name that permission rules match.
    pub tool: &'static str,
    pub server: &'a Server,
    /// Arguments that permission rules match: the server's name, the URI and the tool's other arguments.
    pub arguments: &'a RawJson,
    pub caller: &'a ToolCaller,
}

/// Permission required for an access, in addition to passing the deny rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredPermission {
    Nothing,
    /// A rule or a person must allow the access. Holds the reason shown in the prompt, if there is a specific one.
    Permission(Option<&'static str>),
}

/// A permitted access, with the tool description needed to check it again.
pub(crate) struct PermittedAccess {
    pub tool: Arc<ToolDescription>,
    pub by: PermissionSource,
}

impl ServerAccess<'_> {
    fn description(&self, need: RequiredPermission) -> Arc<ToolDescription> {
        let mut description = ToolDescription::new(self.tool, "", RawJson::empty_object());
        let reason = match need {
            RequiredPermission::Nothing => None,
            RequiredPermission::Permission(reason) => reason,
        };
        description.risk = ToolRisk::Low;
        description.permission = if need == RequiredPermission::Nothing {
            PermissionRequirement::NotNeeded
        } else {
            PermissionRequirement::Needed
        };
        description.subject = Some(CallSubject { provider: self.server.name.as_str().into(), reason });
        Arc::new(description)
    }
}

impl HostContext {
    /// Returns the refusal if a rule denies everything a server offers.
    pub fn denial_of(&self, server: &Server) -> Option<CallRefusal> {
        let rule = self.rules.denial_rule(&server.name, &server.origin())?;
        Some(CallRefusal::new(RefusalReason::Denied { rule: format!("rule {rule}") }))
    }

    /// Returns an error if a rule denies everything the server offers.
    pub fn check_not_denied(&self, server: &Server) -> Result<(), HostError> {
        self.denial_of(server).map_or(Ok(()), |refusal| Err(HostError::Denied(refusal)))
    }

    /// Checks an access with the gate. Waits for the answer if the gate prompts a person.
    pub async fn permit_access(
        &self,
        access: ServerAccess<'_>,
        need: RequiredPermission,
    ) -> Result<PermittedAccess, HostError> {
        let tool = access.description(need);
        let ServerAccess { caller, arguments, .. } = access;
        let by = self.gate.check(GatedCall { caller, tool: &tool, arguments }).wait().await;
        by.map(|by| PermittedAccess { tool, by }).map_err(HostError::Denied)
    }

    /// Checks an access to a resource. Waits for the server's lists if the decision needs them and they are not loaded
    /// yet.
    pub async fn permit_uri(
        &self,
        access: ServerAccess<'_>,
        uri: &str,
        timeout: Option<Duration>,
    ) -> Result<PermittedAccess, HostError> {
        // A denied server is not started just to read its lists. A caller that named the URI itself has given consent.
        let decided = access.caller.consent == CallerConsent::Given || self.denial_of(access.server).is_some();
        let need = match decided || self.is_uri_listed(access.server, uri, timeout).await? {
            true => RequiredPermission::Nothing,
            false => RequiredPermission::Permission(Some(UNLISTED_URI_REASON)),
        };
        self.permit_access(access, need).await
    }

    /// Checks a request other than `tools/call` with the gate, if it concerns resources or prompts.
    pub async fn permit_request(
        &self,
        server: &Server,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
    ) -> Result<(), HostError> {
        let tool = match method {
            "resources/read" => READ_RESOURCE_TOOL,
            "resources/subscribe" => SUBSCRIBE_RESOURCE_TOOL,
            "resources/list" | "resources/templates/list" | "prompts/list" | "prompts/get" | "completion/complete" => {
                return self.check_not_denied(server);
            }
            _ => return Ok(()),
        };
        let bounds = &self.options.limits.bounds;
        let members = params.and_then(|params| object_members(params, bounds).ok()).unwrap_or_default();
        let uri = members.iter().find(|(key, _)| key == "uri").and_then(|(_, uri)| uri.decode(bounds).ok());
        let uri: String = uri.unwrap_or_default();
        let arguments = rule_arguments(server, &uri);
        let access = ServerAccess { tool, server, arguments: &arguments, caller: &options.caller };
        self.permit_uri(access, &uri, options.request.timeout).await.map(|_| ())
    }

    /// Reports whether the server lists the URI or a template that matches it.
    async fn is_uri_listed(&self, server: &Server, uri: &str, timeout: Option<Duration>) -> Result<bool, HostError> {
        // The server has no resources: the connection refuses the request before sending anything.
        if server.live_connection().is_some_and(|live| !live.connection.facts().capabilities.resources) {
            return Ok(true);
        }
        let is_known = |section: &&Arc<Section>| {
            !section.unasked.iter().any(|list| matches!(list, ListName::Resources | ListName::Templates))
        };
        let known = self.publisher.peek().section(server.name.as_str()).filter(is_known).cloned();
        let section = match known {
            Some(section) => Some(section),
            None => self.wait_for_lists(server, timeout).await?.section(server.name.as_str()).cloned(),
        };
        Ok(section.is_some_and(|section| is_listed(&section, uri)))
    }
}

/// Returns the arguments that permission rules match for a request made without a tool call.
pub(crate) fn rule_arguments(server: &Server, uri: &str) -> RawJson {
    RawJson::new_unchecked(json!({ "server": server.name.as_str(), "uri": uri }).to_string())
}

fn is_listed(section: &Section, uri: &str) -> bool {
    section.resources.iter().any(|resource| resource.uri == uri)
        || matches_any(uri, section.templates.iter().map(|template| template.uri_template.as_str()))
}
