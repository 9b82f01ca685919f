//! Questions for permission, which the client whose call waits is asked.

use std::sync::{Arc, OnceLock, Weak};

use serde_json::{Value, json};
use wharf::spec::UntrustedText;
use wharf::tools::ToolCaller;
use wharf::wire::{ElicitationResponse, Era, JsonLimits};
use wharf::{Ask, AskReply, Asker, PermissionAnswer, PermissionAsk};

use super::{ClientQuestion, read_elicitation};
use crate::gateway::GatewayShared;
use crate::route::CallRoute;

/// Maximum characters of a call's arguments in a question.
const MAX_SHOWN_ARGUMENTS: usize = 2000;

/// Asks the clients of a gateway for permission. The host and the gateway share it: it is created first, then the host
/// with [`HostBuilder::asker`](wharf::HostBuilder::asker), then the gateway.
///
/// Only a client that can show forms is asked. Calls of the others are refused as by a host without an asker, and so is
/// every other question of the host.
#[derive(Clone, Default)]
pub struct GatewayAsker {
    gateway: Arc<OnceLock<Weak<GatewayShared>>>,
}

impl GatewayAsker {
    /// Creates an asker. It declines every question until a gateway uses it.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn set_gateway(&self, gateway: &Arc<GatewayShared>) {
        let _ = self.gateway.set(Arc::downgrade(gateway));
    }

    fn route(&self, request: Option<u64>) -> Option<(Arc<GatewayShared>, Arc<CallRoute>)> {
        let gateway = self.gateway.get()?.upgrade()?;
        let route = gateway.routes.find(request?).filter(|route| route.client.class.forms)?;
        Some((gateway, route))
    }
}

impl Asker for GatewayAsker {
    fn ask(&self, ask: Ask) {
        // A dropped reply declines the question.
        let Ask::Permission(ask, reply) = ask else { return };
        if let Some((gateway, route)) = self.route(ask.request) {
            drop(gateway.runtime.spawn(ask_client(route, ask, reply)));
        }
    }

    fn can_ask(&self, caller: &ToolCaller) -> bool {
        self.route(caller.request).is_some()
    }

    fn supports_elicitation(&self) -> bool {
        false
    }

    fn supports_logins(&self) -> bool {
        false
    }
}

async fn ask_client(route: Arc<CallRoute>, ask: PermissionAsk, mut reply: AskReply<PermissionAnswer>) {
    let question = ClientQuestion::permission(&permission_form(&ask, route.client.era));
    let answer = tokio::select! {
        answer = route.ask(question) => read_permission(&read_elicitation(answer)),
        () = reply.wait_withdrawn() => return,
    };
    reply.answer(answer);
}

/// Returns the form that asks for permission. Only a session can be given a permission for its duration.
fn permission_form(ask: &PermissionAsk, era: Era) -> Value {
    let arguments = UntrustedText::new(ask.arguments.as_str());
    let arguments = arguments.truncate(MAX_SHOWN_ARGUMENTS);
    let tool = UntrustedText::new(&*ask.id.tool);
    let mut message = format!(
        "Allow the call of `{}` on the server `{}`? Arguments: {arguments}. Reason for asking: {}.",
        tool.truncate(200),
        ask.id.server,
        ask.reason
    );
    if let Some(changed) = &ask.changed {
        message.push_str(&format!(" The definition of the tool has changed since it was approved:\n{changed}"));
    }
    let (choices, names) = match era {
        Era::Handshake => (json!(["once", "session", "no"]), json!(["Allow once", "Allow for this session", "Refuse"])),
        Era::Stateless => (json!(["once", "no"]), json!(["Allow once", "Refuse"])),
    };
    let decision = json!({"type": "string", "title": "Decision", "enum": choices, "enumNames": names});
    let schema = json!({"type": "object", "properties": {"decision": decision}, "required": ["decision"]});
    json!({"message": message, "requestedSchema": schema})
}

/// Reads the answer to [`permission_form`]. Anything unclear is a refusal.
fn read_permission(answer: &ElicitationResponse) -> PermissionAnswer {
    let ElicitationResponse::Accept(Some(content)) = answer else { return PermissionAnswer::No };
    let content: Value = content.decode(&JsonLimits::default()).unwrap_or_default();
    match content["decision"].as_str() {
        Some("once") => PermissionAnswer::Once,
        Some("session") => PermissionAnswer::Session,
        _ => PermissionAnswer::No,
    }
}

#[cfg(test)]
mod tests {
    use wharf::RawJson;

    use super::*;

    #[test]
    fn unclear_answers_refuse_the_call() {
        let accept = |text: &str| ElicitationResponse::Accept(Some(RawJson::new_unchecked(text.to_owned())));
        assert_eq!(read_permission(&accept(r#"{"decision":"once"}"#)), PermissionAnswer::Once);
        assert_eq!(read_permission(&accept(r#"{"decision":"session"}"#)), PermissionAnswer::Session);
        for unclear in [accept("{}"), accept(r#"{"decision":"always"}"#), accept(r#"{"decision":true}"#), accept("[]")]
        {
            assert_eq!(read_permission(&unclear), PermissionAnswer::No, "{unclear:?}");
        }
        for other in [ElicitationResponse::Accept(None), ElicitationResponse::Decline, ElicitationResponse::Cancel] {
            assert_eq!(read_permission(&other), PermissionAnswer::No);
        }
    }
}
