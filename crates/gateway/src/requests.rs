//! The methods that the gateway answers with its host.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use wharf::spec::ServerName;
use wharf::wire::{Era, JsonLimits, RpcError, code, object_members};
use wharf::{CallOptions, RawJson};
use wharf_serve::{ClientMessage, Outbox};

use crate::catalog_view::EntryList;
use crate::client_view::ClientView;
use crate::conversation;
use crate::errors::{host_error, invalid_params, rpc_error, rpc_error_with, tool_error, unknown_method};
use crate::gateway::GatewayShared;
use crate::list_changes;
use crate::questions::SessionQuestions;
use crate::resource_updates::{self, SessionSubscriptions};
use crate::responses::{for_handshake_client, list_result, with_cache_hint, without_cache_hint};
use crate::route::ClientFacts;
use crate::tasks;
use crate::tool_search::{self, DescribedCall, ToolSearch};
use crate::upstream::{CallTarget, box_future, prompt_params, read_params};

/// A request in progress.
pub(crate) struct ClientRequest {
    pub shared: Arc<GatewayShared>,
    pub view: Arc<ClientView>,
    pub client: ClientFacts,
    /// The open questions to the client of a session.
    pub questions: Arc<SessionQuestions>,
    /// The resources that a session subscribes to.
    pub subscriptions: Arc<SessionSubscriptions>,
    /// The raw id.
    pub id: Bytes,
    pub message: ClientMessage,
    pub out: Arc<dyn Outbox>,
}

/// Reports whether [`answer`] knows a method of an era.
pub(crate) fn is_known(era: Era, method: &str) -> bool {
    match method {
        "tools/list"
        | "tools/call"
        | "resources/list"
        | "resources/templates/list"
        | "resources/read"
        | "prompts/list"
        | "prompts/get"
        | "completion/complete" => true,
        "subscriptions/listen" => era == Era::Stateless,
        "resources/subscribe" | "resources/unsubscribe" => era == Era::Handshake,
        method => tasks::is_task_method(era, method),
    }
}

/// Answers a request.
pub(crate) async fn answer(request: &ClientRequest) -> Result<RawJson, RpcError> {
    request.message.members().map_err(|why| invalid_params(format!("`params` cannot be read: {why}")))?;
    match &*request.message.method() {
        "tools/list" => request.list("tools", |view| &view.tools).await,
        "resources/list" => request.list("resources", |view| &view.resources).await,
        "resources/templates/list" => request.list("resourceTemplates", |view| &view.templates).await,
        "prompts/list" => request.list("prompts", |view| &view.prompts).await,
        "tools/call" => request.call_tool().await,
        "resources/read" => request.read_resource().await,
        "prompts/get" => request.get_prompt().await,
        "completion/complete" => request.complete().await,
        "subscriptions/listen" => list_changes::listen(request).await,
        "resources/subscribe" => resource_updates::subscribe_session(request).await,
        "resources/unsubscribe" => resource_updates::unsubscribe_session(request),
        method if tasks::is_task_method(request.client.era, method) => tasks::answer_method(request).await,
        method => Err(unknown_method(method)),
    }
}

/// Searches for tools, on another thread: the first search takes a while.
async fn find_tools(search: &Arc<ToolSearch>, arguments: RawJson) -> Result<RawJson, RpcError> {
    let search = Arc::clone(search);
    let found = wharf_threads::run_blocking(move || search.find(&arguments)).await;
    found.map_err(|error| rpc_error(code::INTERNAL, format!("the search cannot be run: {error}")))
}

impl ClientRequest {
    async fn list(
        &self,
        member: &str,
        list: impl Fn(&crate::catalog_view::CatalogView) -> &EntryList,
    ) -> Result<RawJson, RpcError> {
        let cursor: Option<String> = self.param("cursor")?;
        let view = self.view.started().await;
        let page = list(&view).page(cursor.as_deref()).ok_or_else(|| invalid_params("unknown cursor"))?;
        Ok(list_result(member, &page, self.client.era))
    }

    async fn call_tool(&self) -> Result<RawJson, RpcError> {
        let name: String = self.required("name")?;
        let arguments = self.message.param("arguments").unwrap_or_else(RawJson::empty_object);
        if !arguments.is_object() {
            return Err(invalid_params("`arguments` must be an object"));
        }
        let mut view = self.view.current();
        if view.tool(&name).is_none() {
            // Its server may be starting.
            view = self.view.started().await;
        }
        let result = match (&view.search, name.as_str()) {
            (Some(search), tool_search::FIND_TOOLS) => find_tools(search, arguments).await?,
            (Some(_), tool_search::CALL_TOOL) => match tool_search::read_call(&arguments) {
                // The gate and the audit log see the tool itself.
                Ok(DescribedCall { name, arguments }) if let Some(tool) = view.tool(&name) => {
                    conversation::answer(self, CallTarget::Tool { id: tool.clone(), name, arguments }).await?
                }
                Ok(DescribedCall { name, .. }) => tool_search::unknown_tool_result(&name),
                Err(result) => result,
            },
            _ => match view.tool(&name) {
                Some(tool) => {
                    conversation::answer(self, CallTarget::Tool { id: tool.clone(), name, arguments }).await?
                }
                None => self.unknown_tool(&name)?,
            },
        };
        Ok(match self.client.era {
            Era::Handshake => for_handshake_client(result),
            Era::Stateless => result,
        })
    }

    /// Returns the result or the error for a tool that is not offered. A client may know the tool from before: it learns
    /// that the server is out.
    fn unknown_tool(&self, name: &str) -> Result<RawJson, RpcError> {
        let reason = self.view.unavailability(name).and_then(|error| tool_error(&error));
        reason.ok_or_else(|| invalid_params(format!("unknown tool `{name}`")))
    }

    async fn read_resource(&self) -> Result<RawJson, RpcError> {
        let uri: String = self.required("uri")?;
        let (server, own) = self.find_resource(&uri).await?;
        let target = CallTarget::Request { server, method: "resources/read", params: read_params(&own), name: own };
        let result = conversation::answer(self, target).await?;
        Ok(match self.client.era {
            Era::Handshake => without_cache_hint(result),
            Era::Stateless => with_cache_hint(result),
        })
    }

    /// Finds the server of a resource, and the resource's URI there.
    pub async fn find_resource(&self, uri: &str) -> Result<(ServerName, String), RpcError> {
        let view = self.view.started().await;
        let listed = view.resource(uri).cloned();
        let by_template = || self.view.template_server(uri).map(|server| (server, uri.to_owned()));
        listed.or_else(by_template).ok_or_else(|| {
            let code = if self.client.era == Era::Stateless { code::INVALID_PARAMS } else { code::RESOURCE_NOT_FOUND };
            rpc_error_with(code, "unknown resource", &json!({ "uri": uri }))
        })
    }

    async fn get_prompt(&self) -> Result<RawJson, RpcError> {
        let name: String = self.required("name")?;
        let view = self.view.started().await;
        let found = view.prompt(&name).ok_or_else(|| invalid_params(format!("unknown prompt `{name}`")))?;
        let arguments: Value = self.param("arguments")?.unwrap_or_else(|| json!({}));
        let params = prompt_params(&found.1, &arguments);
        let target = CallTarget::Request { server: found.0.clone(), method: "prompts/get", name, params };
        conversation::answer(self, target).await
    }

    async fn complete(&self) -> Result<RawJson, RpcError> {
        let mut reference: Value = self.required("ref")?;
        let argument: Value = self.required("argument")?;
        let context: Option<Value> = self.param("context")?;
        let view = self.view.started().await;
        let server = match (reference["type"].as_str(), reference["name"].as_str(), reference["uri"].as_str()) {
            (Some("ref/prompt"), Some(name), _) => view.prompt(name).cloned().map(|(server, own)| {
                reference["name"] = own.into();
                server
            }),
            (Some("ref/resource"), _, Some(uri)) => {
                let listed = view.resource(uri).cloned();
                let found = listed.or_else(|| Some((self.view.template_server(uri)?, uri.to_owned())));
                found.map(|(server, own)| {
                    reference["uri"] = own.into();
                    server
                })
            }
            _ => None,
        };
        let server = server.ok_or_else(|| invalid_params("`ref` names neither a prompt nor a resource"))?;
        let mut params = json!({"ref": reference, "argument": argument});
        if let Some(context) = context {
            params["context"] = context;
        }
        self.forward(&server, "completion/complete", &params).await
    }

    /// Sends a request to a server and returns its result.
    async fn forward(&self, server: &ServerName, method: &str, params: &Value) -> Result<RawJson, RpcError> {
        let params = RawJson::new_unchecked(params.to_string());
        let result = box_future(self.shared.host.request(server, method, Some(&params), self.options())).await;
        result.map(|result| result.result).map_err(|error| host_error(&error))
    }

    fn options(&self) -> CallOptions {
        let mut options = CallOptions::default().caller(self.client.caller());
        options.request.meta = self.forwarded_meta();
        options
    }

    /// Returns the members of `_meta` that concern the server, such as `traceparent`.
    pub fn forwarded_meta(&self) -> Option<RawJson> {
        let meta = self.message.param("_meta")?;
        let members = object_members(&meta, &JsonLimits::default()).ok()?;
        // T62: baggage is for programs of the client's own, not for servers.
        let is_own =
            |key: &str| ["progressToken", "baggage"].contains(&key) || key.starts_with("io.modelcontextprotocol/");
        let forwarded = members.iter().filter(|(key, _)| !is_own(key));
        let text: Vec<String> = forwarded.map(|(key, value)| format!("{}:{}", json!(key), value.as_str())).collect();
        (!text.is_empty()).then(|| RawJson::new_unchecked(format!("{{{}}}", text.join(","))))
    }

    /// Decodes a parameter, if it is present.
    pub fn param<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RpcError> {
        let raw = self.message.param(name).filter(|raw| raw.as_bytes() != b"null");
        let decoded = raw.map(|raw| raw.decode(&JsonLimits::default())).transpose();
        decoded.map_err(|_| invalid_params(format!("`{name}` has the wrong type")))
    }

    pub fn required<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, RpcError> {
        self.param(name)?.ok_or_else(|| invalid_params(format!("`{name}` is missing")))
    }
}
