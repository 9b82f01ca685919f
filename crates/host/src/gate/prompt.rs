//! Prompts a person for permission and remembers the answer.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use wharf_json::RawJson;
use wharf_policy::{DecisionReason, Grant, GrantLifetime, GrantScope, diff_definitions};
use wharf_spec::{ServerName, ToolId};
use wharf_tools::{CallRefusal, Principal, RefusalReason, ToolCaller, ToolDescription};

use super::{PendingAttempt, RuleDecision, RuleGate, server_of, tool_identity};
use crate::ask::{Ask, PermissionAnswer, PermissionAsk, ask_and_wait};
use crate::events::Event;

impl RuleGate {
    /// Prompts the person, unless the answer to another prompt has settled the question. Ends with the host.
    pub(super) async fn prompt(self: Arc<Self>, pending: PendingAttempt) -> Result<(), CallRefusal> {
        let Some(context) = self.context() else { return Err(declined_refusal(None)) };
        let (time, mut closing) = (context.options.limits.ask_timeout, context.closing.subscribe());
        drop(context);
        tokio::select! {
            answer = self.prompt_exclusively(pending, time) => answer,
            _ = closing.wait_for(|closing| *closing) => Err(unanswered_refusal("the host is closed")),
        }
    }

    /// Prompts the person once no other prompt of the same principal is open. The timeout starts when the asker gets
    /// the prompt.
    async fn prompt_exclusively(&self, pending: PendingAttempt, time: Duration) -> Result<(), CallRefusal> {
        let PendingAttempt { caller, tool, arguments } = pending;
        let permits = Arc::clone(&self.state().answers.answers_mut(&caller.principal).prompt_permit);
        let _prompt_permit = permits.acquire().await;
        if !self.is_current_definition(&tool) {
            return Err(CallRefusal::new(RefusalReason::PermissionStale));
        }
        let (why, approved_before) = match self.decide(&caller, &tool, &arguments) {
            RuleDecision::Yes => return Ok(()),
            RuleDecision::No(refusal) => return Err(refusal),
            RuleDecision::Ask { why, approved_before } => (why, approved_before),
        };
        let Some(asker) = self.asker_of(&caller) else {
            return Err(self.no_asker_refusal(&tool, approved_before.as_deref()));
        };
        let asked_about = self.server_instance(&tool);
        let ask = self.permission_ask(&caller, &tool, &arguments, &why, approved_before.as_deref());
        let answer = match ask {
            Some(ask) => tokio::time::timeout(time, ask_and_wait(&**asker, |reply| Ask::Permission(ask, reply))).await,
            None => Ok(None),
        };
        let lifetime = match answer {
            Ok(Some(PermissionAnswer::Unanswered)) => Err(self.no_asker_refusal(&tool, approved_before.as_deref())),
            Ok(answer) => grant_lifetime(answer),
            Err(_) => Err(unanswered_refusal("permission prompt timed out")),
        };
        let lifetime = lifetime.inspect_err(|_| {
            self.record_decision(&caller, &tool, &arguments, "deny", &"declined or not answered at the prompt");
        })?;
        if !self.is_current_definition(&tool) || !is_same_server(asked_about, self.server_instance(&tool)) {
            self.record_decision(
                &caller,
                &tool,
                &arguments,
                "deny",
                &"the server was replaced or reconnected during the prompt",
            );
            return Err(CallRefusal::new(RefusalReason::PermissionStale));
        }
        match (lifetime, approved_before) {
            // Allows this call only: the next one is prompted for with the same difference. An approved definition is
            // approved for all principals, so only the user approves one.
            (GrantLifetime::Once, Some(_)) => {}
            (_, Some(_)) if !caller.principal.is_local() => {}
            (lifetime, _) => self.record_grant(&caller.principal, &permits, &tool, lifetime),
        }
        self.record_decision(&caller, &tool, &arguments, "allow", &"approved at the prompt");
        Ok(())
    }

    fn permission_ask(
        &self,
        caller: &ToolCaller,
        tool: &Arc<ToolDescription>,
        arguments: &RawJson,
        why: &DecisionReason,
        before: Option<&str>,
    ) -> Option<PermissionAsk> {
        let id = match tool_identity(tool) {
            Some((id, _)) => id,
            None => ToolId::new(&server_of(tool).or_else(|| ServerName::new("wharf").ok())?, &*tool.name),
        };
        let context = self.context()?;
        context.event_bus.publish(Event::Asked { server: id.server.clone(), kind: "permission" });
        let after = context.publisher.peek().tool(&id).map(|tool| tool.definition.raw.clone());
        let changed = before.zip(after).map(|(before, after)| diff_definitions(before, after.as_str()).to_string());
        let always = self.always_rule(&caller.principal, tool);
        let (tool, arguments) = (Arc::clone(tool), arguments.clone());
        let (caller, principal, request) = (Arc::clone(&caller.name), caller.principal.clone(), caller.request);
        let reason = match (why, tool.subject.as_ref().and_then(|subject| subject.reason)) {
            (DecisionReason::Default, Some(reason)) => reason.to_owned(),
            _ => why.to_string(),
        };
        Some(PermissionAsk { id, tool, arguments, caller, principal, request, reason, changed, always })
    }

    /// Reports whether the server currently offers exactly this definition. Always true for tools that belong to no
    /// server.
    fn is_current_definition(&self, tool: &ToolDescription) -> bool {
        let Some((id, fingerprint)) = tool_identity(tool) else { return true };
        let Some(context) = self.context() else { return false };
        let catalog = context.publisher.peek();
        catalog.tool(&id).is_some_and(|tool| tool.fingerprint == fingerprint)
    }

    /// Returns the current generation and epoch of a tool's server, to which an answer applies.
    fn server_instance(&self, tool: &ToolDescription) -> Option<(u64, Option<u64>)> {
        let server = self.context()?.server(server_of(tool)?.as_str()).ok()?;
        Some((server.generation, server.live_connection().map(|live| live.epoch)))
    }

    /// Remembers an answer, and pins the definition if the answer is the user's own. The answer of a client that was
    /// forgotten while its prompt was open is not remembered: `permits` are those it had then.
    fn record_grant(
        &self,
        principal: &Principal,
        permits: &Arc<Semaphore>,
        tool: &ToolDescription,
        lifetime: GrantLifetime,
    ) {
        if principal.is_local() {
            self.pin_called_definition(tool);
        } else if !Arc::ptr_eq(permits, &self.state().answers.answers_mut(principal).prompt_permit) {
            return;
        }
        if lifetime == GrantLifetime::Once {
            return;
        }
        let rule = (lifetime == GrantLifetime::Always).then(|| self.always_rule(principal, tool));
        // A grant that cannot become a rule lasts until the host stops or the client's session ends.
        let lifetime = if let Some(Err(_)) = rule { GrantLifetime::Session } else { lifetime };
        match tool_identity(tool) {
            Some((tool, definition)) => {
                let origin = self.origin_of(&tool.server);
                let grant = Grant { tool, origin, arguments: GrantScope::Any, lifetime, definition, until: None };
                self.state().answers.answers_mut(principal).grants.add(grant);
            }
            None => {
                let key = self.host_tool_key(tool);
                self.state().answers.answers_mut(principal).host_tools.insert(key, lifetime);
            }
        }
        match (rule, &self.sink) {
            (Some(Ok(rule)), Some(sink)) => sink(&rule),
            (Some(Err(why)), _) => tracing::warn!("the approval holds for this session only: {why}"),
            _ => {}
        }
    }
}

/// Converts an answer to the lifetime of the grant, or to a refusal.
fn grant_lifetime(answer: Option<PermissionAnswer>) -> Result<GrantLifetime, CallRefusal> {
    match answer {
        Some(PermissionAnswer::Once) => Ok(GrantLifetime::Once),
        Some(PermissionAnswer::Session) => Ok(GrantLifetime::Session),
        Some(PermissionAnswer::Always) => Ok(GrantLifetime::Always),
        Some(PermissionAnswer::NoBecause(why)) => Err(declined_refusal(Some(why))),
        Some(PermissionAnswer::No | PermissionAnswer::Unanswered) | None => Err(declined_refusal(None)),
    }
}

fn unanswered_refusal(why: &str) -> CallRefusal {
    CallRefusal::new(RefusalReason::Other(why.to_owned()))
}

fn declined_refusal(because: Option<String>) -> CallRefusal {
    CallRefusal::new(RefusalReason::SaidNo { because })
}

/// Reports whether the server is the one that the prompt was about. Connecting or disconnecting in the meantime makes
/// no difference.
fn is_same_server(asked: Option<(u64, Option<u64>)>, now: Option<(u64, Option<u64>)>) -> bool {
    match (asked, now) {
        (None, None) => true,
        (Some((asked, before)), Some((server, after))) => {
            asked == server && before.zip(after).is_none_or(|(before, after)| before == after)
        }
        _ => false,
    }
}
