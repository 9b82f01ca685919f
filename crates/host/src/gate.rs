//! The permission gate of a host. It evaluates the rules, then earlier answers, and finally prompts the person.

mod prompt;
mod remembered_answers;
mod rule_sets;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use wharf_json::RawJson;
use wharf_policy::{
    CallDecision, DecisionReason, GrantSet, PermissionEvaluator, PinLimitReached, PinSet, Policy, Rule, RuleAction,
    RuleProblem, RuleWriteError, SourcedRule,
};
use wharf_spec::{Fingerprint, ServerName, ServerOrigin, ToolId};
use wharf_tools::{
    CallRefusal, CallerConsent, Gate, GateDecision, GatedCall, PermissionRequirement, Principal, RefusalReason,
    ToolCaller, ToolDescription, ToolRisk,
};

use crate::ask::Asker;
use crate::audit::{AuditedDecision, AuditedTool};
use crate::context::HostContext;
use crate::definition_review::Remedy;
use remembered_answers::{HostToolKey, RememberedAnswers};
use rule_sets::RuleSets;

/// Receives the rule created by the answer "always", to save it. Called on a runtime thread: it must not block.
pub type RuleSink = Arc<dyn Fn(&Rule) + Send + Sync>;

/// Decides whether a call that needs a prompt is allowed without one. Not consulted about denied calls and changed
/// definitions. Called on a runtime thread: it must not block.
pub type AskFilter = Arc<dyn Fn(&ToolDescription) -> bool + Send + Sync>;

/// What to do when the rules require a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskPolicy {
    /// Prompt the person. Without an asker the call is refused.
    #[default]
    Ask,
    /// Allow the call. Denied calls stay denied, and a changed definition still needs a prompt.
    Allow,
}

/// Gate that evaluates rules, grants and pins, and prompts the person if they require it.
pub(crate) struct RuleGate {
    ask_policy: AskPolicy,
    allowed: Option<AskFilter>,
    asker: Option<Arc<dyn Asker>>,
    sink: Option<RuleSink>,
    /// Enables the audit of decisions.
    audits: bool,
    /// Creation time, used as the current time for grants.
    began: Instant,
    state: Mutex<GateState>,
    context: OnceLock<Weak<HostContext>>,
}

struct GateState {
    rules: Vec<SourcedRule>,
    policy: Arc<Policy>,
    /// Further rules for some callers.
    sets: RuleSets,
    servers: Vec<ServerName>,
    answers: RememberedAnswers,
    pins: PinSet,
}

impl GateState {
    fn recompile_sets(&mut self) {
        self.sets.recompile(&self.rules, &self.servers);
    }
}

/// Input of [`RuleGate::new`].
pub(crate) struct GateConfig {
    pub rules: Vec<SourcedRule>,
    pub ask_policy: AskPolicy,
    pub allowed: Option<AskFilter>,
    pub asker: Option<Arc<dyn Asker>>,
    pub sink: Option<RuleSink>,
    pub audits: bool,
    pub pins: PinSet,
}

/// An owned copy of an attempt, which lives while the person decides.
struct PendingAttempt {
    caller: ToolCaller,
    tool: Arc<ToolDescription>,
    arguments: RawJson,
}

impl RuleGate {
    pub fn new(parts: GateConfig) -> Arc<Self> {
        let GateConfig { rules, ask_policy, allowed, asker, sink, audits, pins } = parts;
        let policy = Arc::new(Policy::compile(rules.clone(), &[]));
        let (sets, answers) = (RuleSets::default(), RememberedAnswers::default());
        let state = GateState { rules, policy, sets, servers: Vec::new(), answers, pins };
        Arc::new(Self {
            ask_policy,
            allowed,
            asker,
            sink,
            audits,
            began: Instant::now(),
            state: Mutex::new(state),
            context: OnceLock::new(),
        })
    }

    /// Sets the host that the gate belongs to.
    pub fn set_context(&self, context: &Arc<HostContext>) {
        // Set exactly once, when the host is built.
        let _ = self.context.set(Arc::downgrade(context));
    }

    /// Sets the servers and recompiles the rules, whose meaning may depend on them.
    pub fn set_servers(&self, servers: Vec<ServerName>) {
        let mut state = self.state();
        let policy = Arc::new(Policy::compile(state.rules.clone(), &servers));
        for gone in state.servers.iter().filter(|server| !servers.contains(server)).cloned().collect::<Vec<_>>() {
            state.answers.forget_server(&gone);
        }
        state.policy = policy;
        state.servers = servers;
        state.recompile_sets();
    }

    /// Sets the rules that apply to some callers besides the others. If a rule is unreadable, all calls of these callers
    /// are denied, and the problem is returned.
    pub fn set_rule_set(&self, name: &str, rules: Vec<SourcedRule>) -> Result<(), RuleProblem> {
        let state = &mut *self.state();
        state.sets.insert(name, rules, &state.rules, &state.servers)
    }

    /// Sets the rules. If a user's rule is unreadable, keeps the old rules and returns the problem.
    pub fn set_rules(&self, rules: Vec<SourcedRule>) -> Result<(), RuleProblem> {
        let mut state = self.state();
        let policy = Policy::compile(rules.clone(), &state.servers);
        if let Some(problem) = policy.problems().iter().find(|problem| problem.is_fatal()) {
            return Err(problem.clone());
        }
        (state.rules, state.policy) = (rules, Arc::new(policy));
        state.recompile_sets();
        // Permanent answers are part of the rules now, or have been removed from them.
        state.answers.forget_permanent();
        Ok(())
    }

    /// Forgets all answers about a server that was removed or replaced.
    pub fn forget_grants(&self, server: &ServerName) {
        self.state().answers.forget_server(server);
    }

    /// Forgets the answers of a principal, because its session has ended.
    pub fn forget_principal(&self, principal: &Principal) {
        self.state().answers.forget_principal(principal);
    }

    /// Returns the rule that denies everything a server offers.
    pub fn denial_rule(&self, server: &ServerName, origin: &ServerOrigin) -> Option<Arc<SourcedRule>> {
        let policy = Arc::clone(&self.state().policy);
        policy.server_denial(server, origin)
    }

    /// Returns the problems of the rules.
    pub fn problems(&self) -> Vec<RuleProblem> {
        self.state().policy.problems().to_vec()
    }

    /// Returns the approved definitions.
    pub fn pins(&self) -> PinSet {
        self.state().pins.clone()
    }

    /// Pins a definition that a person approved.
    pub fn pin_definition(
        &self,
        origin: ServerOrigin,
        tool: ToolId,
        fingerprint: Fingerprint,
        definition: &str,
    ) -> Result<(), PinLimitReached> {
        self.state().pins.approve(origin, tool, fingerprint, definition)
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn context(&self) -> Option<Arc<HostContext>> {
        self.context.get()?.upgrade()
    }

    fn evaluate(&self, caller: &ToolCaller, tool: &ToolDescription, arguments: &RawJson) -> CallDecision {
        let Some(source) = &tool.source else {
            let risk = match (tool.permission, tool.risk) {
                (PermissionRequirement::NotNeeded, ToolRisk::Low) => wharf_policy::RiskLevel::Low,
                _ => wharf_policy::RiskLevel::High,
            };
            let key = self.host_tool_key(tool);
            let mut attempt = wharf_policy::CallAttempt::builtin_tool(&tool.name, arguments, risk);
            if let Some((origin, server)) = &key.1 {
                attempt = attempt.accessing(server, origin);
            }
            let decision = self.evaluate_attempt(caller, &attempt, None);
            return self.apply_host_tool_answer(&caller.principal, &key, decision);
        };
        let context = self.context();
        let servers = context.as_ref().map(|context| context.servers.load());
        let known = servers.as_ref().and_then(|servers| servers.get_key_value(&*source.provider));
        match known {
            Some((name, server)) => {
                let mut attempt = wharf_policy::CallAttempt::server_tool(name, &source.name, arguments);
                let settings = server.settings.load();
                (attempt.trust, attempt.origin) = (settings.effective.trust, &settings.effective.origin);
                self.evaluate_attempt(caller, &attempt, Some(&source.fingerprint))
            }
            // A tool of another provider, which no server rule covers.
            None => self.evaluate_attempt(
                caller,
                &wharf_policy::CallAttempt::builtin_tool(&tool.name, arguments, wharf_policy::RiskLevel::High),
                None,
            ),
        }
    }

    fn evaluate_attempt(
        &self,
        caller: &ToolCaller,
        attempt: &wharf_policy::CallAttempt<'_>,
        definition: Option<&Fingerprint>,
    ) -> CallDecision {
        let GateState { policy, sets, answers, pins, .. } = &mut *self.state();
        let policy = match &caller.rule_set {
            None => policy,
            Some(name) => sets.policy(name),
        };
        let mut none = GrantSet::default();
        let grants = answers.find_mut(&caller.principal).map_or(&mut none, |answers| &mut answers.grants);
        // No grant of this gate expires, so any time is valid.
        PermissionEvaluator { policy, grants, pins, now: self.began }.evaluate(attempt, definition)
    }

    /// Applies an earlier answer about a tool that belongs to no server. It replaces a prompt and nothing else.
    fn apply_host_tool_answer(
        &self,
        principal: &Principal,
        tool: &HostToolKey,
        decision: CallDecision,
    ) -> CallDecision {
        let answer = self.state().answers.find_mut(principal).and_then(|answers| answers.host_tools.get(tool).copied());
        match (decision, answer) {
            (CallDecision::Ask { .. }, Some(lifetime)) => {
                CallDecision::Allow { why: DecisionReason::Grant(lifetime), first_seen: false }
            }
            (decision, _) => decision,
        }
    }

    /// Pins the definition of a permitted call, whether a rule, trust, a grant, a waived prompt or the user's answer
    /// permitted it. Does nothing if the catalog no longer has this definition.
    fn pin_called_definition(&self, tool: &ToolDescription) {
        let Some((id, fingerprint)) = tool_identity(tool) else { return };
        let Some(context) = self.context() else { return };
        let catalog = context.publisher.peek();
        // The catalog may hold a newer definition, which has not been approved.
        let definition = catalog.tool(&id).filter(|tool| tool.fingerprint == fingerprint);
        let Some(definition) = definition.map(|tool| tool.definition.raw.clone()) else { return };
        let Ok(server) = context.server(id.server.as_str()) else { return };
        let definition = server.redact(definition.as_str());
        let approved = self.state().pins.approve(server.origin(), id, fingerprint, &definition);
        match approved {
            Ok(()) => context.save_pins(),
            Err(full) => tracing::warn!("{full}"),
        }
    }

    /// Decides without a prompt, if possible. Audits a final decision and may pin the definition of an allowed call.
    /// A deferred permission is not audited here.
    fn decide(&self, caller: &ToolCaller, tool: &Arc<ToolDescription>, arguments: &RawJson) -> RuleDecision {
        match self.evaluate(caller, tool, arguments) {
            CallDecision::Allow { .. } | CallDecision::Ask { .. }
                if tool.permission == PermissionRequirement::Deferred =>
            {
                RuleDecision::Yes
            }
            CallDecision::Allow { why, first_seen } => {
                // A client's answer holds for the client, a rule of the user for all.
                let is_clients = matches!(why, DecisionReason::Grant(_)) && !caller.principal.is_local();
                if first_seen && !is_clients {
                    self.pin_called_definition(tool);
                }
                self.record_decision(caller, tool, arguments, "allow", &why);
                RuleDecision::Yes
            }
            CallDecision::Deny { why } => {
                self.record_decision(caller, tool, arguments, "deny", &why);
                RuleDecision::No(CallRefusal::new(RefusalReason::Denied { rule: why.to_string() }))
            }
            CallDecision::Ask { why, changed: approved_before } => {
                match self.prompt_waiver(caller, tool, approved_before.as_deref()) {
                    Some(reason) => {
                        let is_clients = caller.consent == CallerConsent::Given && !caller.principal.is_local();
                        if approved_before.is_none() && !is_clients {
                            self.pin_called_definition(tool);
                        }
                        self.record_decision(caller, tool, arguments, "allow", &reason);
                        RuleDecision::Yes
                    }
                    None => RuleDecision::Ask { why, approved_before },
                }
            }
        }
    }

    /// Returns the reason for skipping a prompt, if there is one. A changed definition may be called with the caller's
    /// own consent, which does not approve it. [`AskPolicy::Allow`] does not cover it, because a different
    /// definition was approved.
    fn prompt_waiver(
        &self,
        caller: &ToolCaller,
        tool: &ToolDescription,
        approved_before: Option<&str>,
    ) -> Option<&'static str> {
        let is_allowed = || self.allowed.as_ref().is_some_and(|allowed| allowed(tool));
        match (caller.consent, self.ask_policy, approved_before) {
            (CallerConsent::Given, ..) => Some("the caller gave consent"),
            (CallerConsent::Ask, AskPolicy::Allow, None) => Some("prompts are disabled and count as allowed"),
            (CallerConsent::Ask, _, None) if is_allowed() => Some("allowed for this session in advance"),
            _ => None,
        }
    }

    /// Returns the asker, if it can ask the caller's principal.
    fn asker_of(&self, caller: &ToolCaller) -> Option<&Arc<dyn Asker>> {
        self.asker.as_ref().filter(|asker| asker.can_ask(caller))
    }

    /// Returns the refusal of a call that requires a prompt, for a host without an asker.
    fn no_asker_refusal(&self, tool: &ToolDescription, approved_before: Option<&str>) -> CallRefusal {
        if approved_before.is_some() {
            let refusal = CallRefusal::new(RefusalReason::DefinitionChanged);
            return match (tool_identity(tool), self.context()) {
                (Some((id, _)), Some(context)) => {
                    refusal.with_hint(context.remedy_text(Remedy::ApproveDefinition(&id)))
                }
                _ => refusal,
            };
        }
        let rule = self.allow_rule(tool).ok().and_then(|rule| serde_json::to_string(&rule).ok()).unwrap_or_default();
        let refusal = CallRefusal::new(RefusalReason::NobodyToAsk { rule });
        match tool.subject.as_ref().and_then(|subject| subject.reason) {
            Some(reason) => refusal.with_hint(reason),
            None => refusal,
        }
    }

    /// Returns a tool that belongs to no server, with the server that this call concerns.
    fn host_tool_key(&self, tool: &ToolDescription) -> HostToolKey {
        let server = tool.subject.as_ref().and_then(|subject| ServerName::new(&subject.provider).ok());
        (Arc::clone(&tool.name), server.map(|server| (self.origin_of(&server), server)))
    }

    /// Returns the origin of a server, or the user's own configuration if the server does not exist.
    fn origin_of(&self, server: &ServerName) -> ServerOrigin {
        let server = self.context().and_then(|context| context.server(server.as_str()).ok());
        server.map(|server| server.origin()).unwrap_or_default()
    }

    /// Returns the rule that allows a tool with any arguments.
    fn allow_rule(&self, tool: &ToolDescription) -> Result<Rule, RuleWriteError> {
        match tool_identity(tool) {
            Some((id, _)) => {
                let rule = Rule::for_tool(&id, RuleAction::Allow, &self.state().servers)?;
                rule.with_origin(&self.origin_of(&id.server))
            }
            None => match self.host_tool_key(tool).1 {
                None => Ok(Rule::new(&*tool.name, RuleAction::Allow)),
                Some((origin, server)) => {
                    let pattern = Some(format!("server={server}"));
                    Rule { pattern, ..Rule::new(&*tool.name, RuleAction::Allow) }.with_origin(&origin)
                }
            },
        }
    }

    /// Returns the rule that the answer "always" of a principal creates. A rule holds for every principal.
    fn always_rule(&self, principal: &Principal, tool: &ToolDescription) -> Result<Rule, RuleWriteError> {
        if principal.is_local() { self.allow_rule(tool) } else { Err(RuleWriteError::OneClient) }
    }

    fn record_decision(
        &self,
        caller: &ToolCaller,
        tool: &ToolDescription,
        arguments: &RawJson,
        decision: &'static str,
        why: &dyn std::fmt::Display,
    ) {
        if !self.audits {
            return;
        }
        let Some(context) = self.context() else { return };
        let Some(audit) = &context.audit else { return };
        let provider = tool.source.as_ref().map(|source| &*source.provider);
        let server = provider.or(tool.subject.as_ref().map(|subject| &*subject.provider));
        let name = tool.source.as_ref().map_or(&*tool.name, |source| &*source.name);
        let decision = AuditedDecision { decision, reason: why.to_string() };
        audit.record_decision(AuditedTool { server, name }, arguments, caller, decision);
    }
}

enum RuleDecision {
    Yes,
    No(CallRefusal),
    Ask {
        why: DecisionReason,
        /// The definition approved last, if the tool now has another one.
        approved_before: Option<Arc<str>>,
    },
}

/// Returns the server that a tool belongs to or that its call concerns.
fn server_of(tool: &ToolDescription) -> Option<ServerName> {
    let provider = tool.source.as_ref().map(|source| &source.provider);
    ServerName::new(provider.or(tool.subject.as_ref().map(|subject| &subject.provider))?).ok()
}

fn tool_identity(tool: &ToolDescription) -> Option<(ToolId, Fingerprint)> {
    let source = tool.source.as_ref()?;
    Some((ToolId::new(&server_of(tool)?, Arc::clone(&source.name)), source.fingerprint))
}

/// The gate as held by the registry and the host.
pub(crate) struct SharedGate(pub Arc<RuleGate>);

impl Gate for SharedGate {
    fn check(&self, attempt: GatedCall<'_>) -> GateDecision {
        let GatedCall { caller, tool, arguments } = attempt;
        match self.0.decide(caller, tool, arguments) {
            RuleDecision::Yes => GateDecision::Pass,
            RuleDecision::No(refusal) => GateDecision::Refuse(refusal),
            RuleDecision::Ask { approved_before, .. } if self.0.asker_of(caller).is_none() => {
                let refusal = self.0.no_asker_refusal(tool, approved_before.as_deref());
                self.0.record_decision(caller, tool, arguments, "deny", &"denied: no asker to prompt");
                GateDecision::Refuse(refusal)
            }
            RuleDecision::Ask { .. } => {
                let (caller, tool, arguments) = (caller.clone(), Arc::clone(tool), arguments.clone());
                GateDecision::Ask(Box::pin(Arc::clone(&self.0).prompt(PendingAttempt { caller, tool, arguments })))
            }
        }
    }
}
