//! Questions for permission, which the client whose call waits is asked.

use std::sync::{Arc, OnceLock, Weak};

use serde_json::{Value, json};
use wharf::spec::UntrustedText;
use wharf::tools::ToolCaller;
use wharf::wire::{ElicitationResponse, Era, JsonLimits};
use wharf::{Ask, AskReply, Asker, PermissionAnswer, PermissionAsk};

use super::{ClientQuestion, PermissionDetails, read_elicitation};
use crate::gateway::GatewayShared;
use crate::route::CallRoute;

/// Maximum characters of a call's arguments in a question.
const MAX_SHOWN_ARGUMENTS: usize = 2000;

/// Asks the clients of a gateway for permission. The host and the gateway share it: it is created first, then the host
/// with [`HostBuilder::asker`](wharf::HostBuilder::asker), then the gateway.
///
/// Only a client that can show forms is asked. A call of another one waits for an answer elsewhere, for as long as its
/// view says ([`UnaskedClients`](crate::UnaskedClients)); otherwise it is refused as by a host without an asker. So is
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
        let route = gateway.routes.find(request?).filter(|route| route.can_be_answered())?;
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
    let question = permission_question(&ask, route.client.era);
    let answering = async {
        if route.client.class.forms {
            return read_permission(&read_elicitation(route.ask(question).await));
        }
        match route.wait_for_answer_elsewhere(&question).await {
            Some(answer) => read_permission(&read_elicitation(Ok(answer))),
            None => PermissionAnswer::Unanswered,
        }
    };
    let answer = tokio::select! {
        answer = answering => answer,
        () = reply.wait_withdrawn() => return,
    };
    reply.answer(answer);
}

/// The decisions that are offered, with their names.
struct OfferedChoices {
    values: &'static [&'static str],
    names: &'static [&'static str],
}

/// Only a session can be given a permission for its duration.
fn offered_choices(era: Era) -> OfferedChoices {
    match era {
        Era::Handshake => OfferedChoices {
            values: &["once", "session", "no"],
            names: &["Allow once", "Allow for this session", "Refuse"],
        },
        Era::Stateless => OfferedChoices { values: &["once", "no"], names: &["Allow once", "Refuse"] },
    }
}

fn permission_question(ask: &PermissionAsk, era: Era) -> ClientQuestion {
    let choices = offered_choices(era);
    let details = PermissionDetails {
        arguments: ask.arguments.clone(),
        reason: ask.reason.clone(),
        changed: ask.changed.clone(),
        choices: choices.values,
    };
    ClientQuestion::permission(&permission_form(ask, &choices), details)
}

/// Returns the form that asks for permission.
fn permission_form(ask: &PermissionAsk, choices: &OfferedChoices) -> Value {
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
    let OfferedChoices { values, names } = choices;
    let decision = json!({"type": "string", "title": "Decision", "enum": values, "enumNames": names});
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
