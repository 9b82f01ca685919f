//! Management tools that begin and end resource subscriptions and polling.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use wharf_json::RawJson;
use wharf_spec::{ToolId, UntrustedText};
use wharf_tools::{GatedCall, ToolCaller, ToolError, ToolErrorKind, ToolInvocation, ToolOutcome};

use super::agent_subscriptions::{SubscribeError, SubscriptionSelector};
use super::arguments::{
    PollKind, PollingArguments, StopPollingArguments, SubscribeArguments, UnsubscribeArguments, check_text, check_uri,
    decode_arguments, invalid_call, known_server, permitted_server, poll_interval,
};
use super::output::{outcome_with_remarks, to_json};
use super::read::nearest_uri;
use crate::access::{POLLING_TOOL, RequiredPermission, SUBSCRIBE_RESOURCE_TOOL, ServerAccess};
use crate::context::HostContext;
use crate::error::HostError;
use crate::polling::{self, PollRequest, PollStartError, PollTarget};
use crate::server::Server;
use crate::tool::to_tool_error;

/// Hint for a server that does not support resource subscriptions.
const POLLING_HINT: &str = "use SubscribePolling with the type `resource` to poll it instead";

/// Subscribes to a resource.
pub(super) async fn subscribe(context: Arc<HostContext>, call: ToolInvocation) -> Result<ToolOutcome, ToolError> {
    let SubscribeArguments { server, uri, reason } = decode_arguments(&context, &call.arguments)?;
    check_uri(&uri)?;
    check_text("reason", reason.as_deref())?;
    let server = permitted_server(&context, &server)?;
    let access = ServerAccess {
        tool: SUBSCRIBE_RESOURCE_TOOL,
        server: &server,
        arguments: &call.arguments,
        caller: &call.caller,
    };
    context.permit_uri(access, &uri, call.timeout).await.map_err(|refused| to_tool_error(&refused))?;
    let deadline = context.call_deadline(&server, call.timeout);
    // Counted as a use, so that the server is not stopped as idle before it is asked.
    let _in_use = server.usage.track_call();
    let live = server.wait_until_open(None, deadline).await.map_err(|failed| to_tool_error(&failed))?;
    if !live.connection.facts().capabilities.resources_subscribe {
        let what = format!("the server {} does not support resource subscriptions", server.name);
        return Err(invalid_call(what).with_next_action(POLLING_HINT));
    }
    let begun = context.watches.subscribe(&context, &server, &uri, deadline).await;
    let id = begun.map_err(|why| subscribe_error(&context, &server, &uri, why))?;
    subscribed_outcome(&id, &server, reason.as_deref())
}

fn subscribe_error(context: &HostContext, server: &Server, uri: &str, why: SubscribeError) -> ToolError {
    let name = &server.name;
    match why {
        SubscribeError::TooMany => invalid_call(format!("too many resources of the server {name} are subscribed"))
            .with_next_action("end one with UnsubscribeMcpResource"),
        SubscribeError::NotInTime => ToolError::new(
            ToolErrorKind::TimedOut,
            format!("the server {name} did not confirm the subscription in time"),
        ),
        SubscribeError::NotAgreed => {
            let shown = UntrustedText::new(uri);
            let what = format!("the server {name} does not report changes of {}", shown.truncate(500));
            invalid_call(what).with_next_action(match nearest_uri(context, server, uri) {
                Some(meant) => format!("did you mean {meant}? {POLLING_HINT}"),
                None => POLLING_HINT.to_owned(),
            })
        }
        SubscribeError::TakenOff => removed_error(server),
    }
}

fn removed_error(server: &Server) -> ToolError {
    to_tool_error(&server.unavailable_error(&server.snapshot.borrow()))
}

/// Ends resource subscriptions.
pub(super) async fn unsubscribe(context: Arc<HostContext>, call: ToolInvocation) -> Result<ToolOutcome, ToolError> {
    let UnsubscribeArguments { server, uri, subscription_id } = decode_arguments(&context, &call.arguments)?;
    if server.is_none() && uri.is_none() && subscription_id.is_none() {
        return Err(invalid_call("specify the subscription to end")
            .with_next_action(subscription_hint(&context.watches.describe_all())));
    }
    if let Some(server) = &server {
        known_server(&context, server)?;
    }
    let which = SubscriptionSelector { id: subscription_id.as_deref(), server: server.as_deref(), uri: uri.as_deref() };
    let ended = context.watches.end_matching(&which);
    unsubscribed_outcome(ended, &context.watches.describe_all())
}

/// Begins to poll a tool or a resource.
pub(super) async fn start_polling(context: Arc<HostContext>, call: ToolInvocation) -> Result<ToolOutcome, ToolError> {
    let asked: PollingArguments<'_> = decode_arguments(&context, &call.arguments)?;
    check_text("reason", asked.reason.as_deref())?;
    check_text("toolName", asked.tool_name.as_deref())?;
    let interval = poll_interval(asked.interval_ms)?;
    let server = permitted_server(&context, &asked.server)?;
    let target = match (asked.r#type, &asked.tool_name, &asked.uri) {
        (PollKind::Tool, Some(tool), None) => {
            let arguments =
                asked.arguments.map_or_else(RawJson::empty_object, |arguments| call.arguments.slice_part(arguments));
            let access = polling_access(&server, &call, &call.caller);
            context
                .permit_access(access, RequiredPermission::Nothing)
                .await
                .map_err(|refused| to_tool_error(&refused))?;
            permit_tool_polling(
                &context,
                ToolId::new(&server.name, tool.as_str()),
                arguments,
                RepeatedCall { call: &call, interval },
            )
            .await?
        }
        (PollKind::Resource, None, Some(uri)) if asked.arguments.is_none() => {
            check_uri(uri)?;
            check_has_resources(&context, &server, &call).await?;
            permit_resource_polling(&context, &server, uri, RepeatedCall { call: &call, interval }).await?
        }
        (PollKind::Tool, ..) => {
            return Err(invalid_call(
                "the type `tool` requires `toolName`, accepts `arguments` and does not accept `uri`",
            ));
        }
        (PollKind::Resource, ..) => {
            return Err(invalid_call(
                "the type `resource` requires `uri` and does not accept `toolName` or `arguments`",
            ));
        }
    };
    let begun = context.begin_polling(&server, PollRequest { server: server.name.clone(), target, interval });
    match begun {
        Ok(id) => subscribed_outcome(&id, &server, asked.reason.as_deref()),
        Err(PollStartError::TooMany(most)) => {
            Err(invalid_call(format!("the limit of {most} polling subscriptions is reached"))
                .with_next_action("end one with UnsubscribePolling"))
        }
        Err(PollStartError::TakenOff) => Err(removed_error(&server)),
    }
}

/// The call that requests polling, and the interval.
struct RepeatedCall<'a> {
    call: &'a ToolInvocation,
    interval: Duration,
}

/// Checks the polling of a tool with the gate, as for a call. A prompt is shown now and covers all polls.
///
/// The prompt states that it covers repeated calls.
async fn permit_tool_polling(
    context: &HostContext,
    id: ToolId,
    arguments: RawJson,
    RepeatedCall { call, interval }: RepeatedCall<'_>,
) -> Result<PollTarget, ToolError> {
    if !arguments.is_object() {
        return Err(invalid_call("`arguments` must be an object"));
    }
    let caller: ToolCaller = call.caller.clone();
    let repeated = repeated_caller(&caller, interval);
    let tool = context.find_tool(&id, call.timeout).await.map_err(|failed| to_tool_error(&failed))?;
    let attempt = GatedCall { caller: &repeated, tool: &tool.description, arguments: &arguments };
    let by = context.gate.check(attempt).wait().await;
    let by = by.map_err(|refusal| to_tool_error(&HostError::Denied(refusal)))?;
    // If the tool has changed in the meantime, the first poll detects it.
    Ok(PollTarget::Tool { id, arguments, permitted: tool.fingerprint, by, caller })
}

/// Checks the polling of a resource with the gate, as for a read. The answer covers all polls.
async fn permit_resource_polling(
    context: &HostContext,
    server: &Server,
    uri: &str,
    RepeatedCall { call, interval }: RepeatedCall<'_>,
) -> Result<PollTarget, ToolError> {
    let repeated = repeated_caller(&call.caller, interval);
    let permitted = context.permit_uri(polling_access(server, call, &repeated), uri, call.timeout).await;
    let permitted = permitted.map_err(|refused| to_tool_error(&refused))?;
    let (arguments, caller) = (call.arguments.clone(), call.caller.clone());
    Ok(PollTarget::Resource { uri: uri.to_owned(), arguments, permitted, caller })
}

/// Returns a caller whose name tells the person that the call is repeated.
fn repeated_caller(caller: &ToolCaller, interval: Duration) -> ToolCaller {
    let seconds = interval.as_secs_f64();
    let name = format!("{} (repeated every {seconds} s until stopped)", caller.name);
    ToolCaller { name: name.into(), ..caller.clone() }
}

fn polling_access<'a>(server: &'a Server, call: &'a ToolInvocation, caller: &'a ToolCaller) -> ServerAccess<'a> {
    ServerAccess { tool: POLLING_TOOL, server, arguments: &call.arguments, caller }
}

/// Checks that the server offers resources before any are requested.
async fn check_has_resources(context: &HostContext, server: &Server, call: &ToolInvocation) -> Result<(), ToolError> {
    let opened = server.wait_until_open(None, context.call_deadline(server, call.timeout)).await;
    let live = opened.map_err(|failed| to_tool_error(&failed))?;
    if live.connection.facts().capabilities.resources {
        return Ok(());
    }
    Err(invalid_call(format!("the server {} does not support resources", server.name)))
}

/// Ends polling.
pub(super) async fn stop_polling(context: Arc<HostContext>, call: ToolInvocation) -> Result<ToolOutcome, ToolError> {
    let StopPollingArguments { subscription_id, server, target } = decode_arguments(&context, &call.arguments)?;
    if server.is_none() && target.is_none() && subscription_id.is_none() {
        return Err(invalid_call("specify the subscription to end")
            .with_next_action(subscription_hint(&context.polls.describe_all())));
    }
    if let Some(server) = &server {
        known_server(&context, server)?;
    }
    let which =
        polling::PollSelector { id: subscription_id.as_deref(), server: server.as_deref(), target: target.as_deref() };
    let ended = context.polls.stop(&which);
    unsubscribed_outcome(ended, &context.polls.describe_all())
}

fn subscribed_outcome(id: &str, server: &Server, reason: Option<&str>) -> Result<ToolOutcome, ToolError> {
    let reason = reason.map(|reason| UntrustedText::new(reason).truncate(200).to_string());
    tracing::info!(server = %server.name, id, reason, "subscribed");
    Ok(outcome_with_remarks(&[], to_json(&json!({ "subscribed": true, "subscriptionId": id }))?))
}

fn unsubscribed_outcome(ended: usize, left: &[String]) -> Result<ToolOutcome, ToolError> {
    let remark = (ended == 0).then(|| format!("no subscription matches; {}", subscription_hint(left)));
    Ok(outcome_with_remarks(remark.as_slice(), to_json(&json!({ "unsubscribed": ended > 0 }))?))
}

/// Lists the existing subscriptions as a sentence.
fn subscription_hint(subscriptions: &[String]) -> String {
    match subscriptions {
        [] => "there are no subscriptions".to_owned(),
        all => format!("existing subscriptions: {}", all.iter().take(20).cloned().collect::<Vec<_>>().join(", ")),
    }
}
