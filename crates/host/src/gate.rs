//! The gate of a host: rules first, then what a person has said, then the person.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use wharf_json::Raw;
use wharf_policy::{
    Action, Grant, GrantScope, Grants, Judge, Judgement, Lifetime, NoRule, Pins, Policy, Problem, Reason, Rule,
    SourcedRule, difference,
};
use wharf_spec::{Fingerprint, ServerName, ServerOrigin, ToolId};
use wharf_tools::{Attempt, Caller, Check, Consent, Description, Gate, Permission, Refusal, RefusalReason, Risk};

use crate::ask::{Ask, Asker, PermissionAnswer, PermissionAsk, put};
use crate::context::Context;
use crate::events::Event;

/// Takes the rule that an "always" becomes, to write it where rules are kept. Called on a thread of the runtime: it
/// must return at once.
pub type RuleSink = Arc<dyn Fn(&Rule) + Send + Sync>;

/// What is done where the rules say that a person is to be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenAsked {
    /// The person is asked; where there is none, the call is refused.
    #[default]
    Ask,
    /// It is allowed. What is denied stays denied.
    Allow,
}

/// Decides over rules, grants and pins, and asks a person where those say so.
pub(crate) struct RuleGate {
    when_asked: WhenAsked,
    asker: Option<Arc<dyn Asker>>,
    sink: Option<RuleSink>,
    /// Whether decisions are written down.
    audits: bool,
    /// When it was made: some moment, for what asks for one.
    began: Instant,
    state: Mutex<State>,
    context: OnceLock<Weak<Context>>,
    /// One question at a time: the answer to the first may answer the next.
    desk: Semaphore,
}

struct State {
    rules: Vec<SourcedRule>,
    policy: Arc<Policy>,
    servers: Vec<ServerName>,
    grants: Grants,
    /// What a person has said of tools that are nobody's: as many as there are such tools at most, for each server that
    /// they are about.
    own_grants: HashMap<OwnTool, Lifetime>,
    pins: Pins,
}

/// A tool that is nobody's, and the server that its calls are about.
type OwnTool = (Arc<str>, Option<(ServerOrigin, ServerName)>);

/// What a gate is made with.
pub(crate) struct GateParts {
    pub rules: Vec<SourcedRule>,
    pub when_asked: WhenAsked,
    pub asker: Option<Arc<dyn Asker>>,
    pub sink: Option<RuleSink>,
    pub audits: bool,
    pub pins: Pins,
}

/// An attempt that outlives whoever made it, while a person thinks.
struct Pending {
    caller: Caller,
    tool: Arc<Description>,
    arguments: Raw,
}

impl State {
    /// Forgets what was granted to a server.
    fn forget(&mut self, server: &ServerName) {
        self.grants.forget(server);
        self.own_grants.retain(|(_, about), _| about.as_ref().is_none_or(|(_, other)| other != server));
    }
}

impl RuleGate {
    pub fn new(parts: GateParts) -> Arc<Self> {
        let GateParts { rules, when_asked, asker, sink, audits, pins } = parts;
        let policy = Arc::new(Policy::compile(rules.clone(), &[]));
        let state =
            State { rules, policy, servers: Vec::new(), grants: Grants::default(), own_grants: HashMap::new(), pins };
        Arc::new(Self {
            when_asked,
            asker,
            sink,
            audits,
            began: Instant::now(),
            state: Mutex::new(state),
            context: OnceLock::new(),
            desk: Semaphore::new(1),
        })
    }

    /// The host whose gate it is.
    pub fn serve(&self, context: &Arc<Context>) {
        // Said once, by whoever makes both.
        let _ = self.context.set(Arc::downgrade(context));
    }

    /// These are the servers now: a rule may mean something else than before.
    pub fn servers_changed(&self, servers: Vec<ServerName>) {
        let mut state = self.state();
        let policy = Arc::new(Policy::compile(state.rules.clone(), &servers));
        for gone in state.servers.iter().filter(|server| !servers.contains(server)).cloned().collect::<Vec<_>>() {
            state.forget(&gone);
        }
        state.policy = policy;
        state.servers = servers;
    }

    /// These are the rules now. Where one of them cannot hold, all stays as it was, and that one is told.
    pub fn rules_changed(&self, rules: Vec<SourcedRule>) -> Result<(), Problem> {
        let mut state = self.state();
        let policy = Policy::compile(rules.clone(), &state.servers);
        if let Some(problem) = policy.problems().iter().find(|problem| problem.is_fatal()) {
            return Err(problem.clone());
        }
        (state.rules, state.policy) = (rules, Arc::new(policy));
        // They are among the rules, or somebody has taken them out.
        state.grants.forget_always();
        state.own_grants.retain(|_, lifetime| *lifetime != Lifetime::Always);
        Ok(())
    }

    /// Forgets what was granted to a server: another one has taken its name.
    pub fn forget(&self, server: &ServerName) {
        self.state().forget(server);
    }

    /// The rule that denies everything a server offers.
    pub fn denial(&self, server: &ServerName, origin: &ServerOrigin) -> Option<Arc<SourcedRule>> {
        let policy = Arc::clone(&self.state().policy);
        policy.denial(server, origin)
    }

    /// What is wrong with the rules.
    pub fn problems(&self) -> Vec<Problem> {
        self.state().policy.problems().to_vec()
    }

    /// Which definitions were approved.
    pub fn pins(&self) -> Pins {
        self.state().pins.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn context(&self) -> Option<Arc<Context>> {
        self.context.get()?.upgrade()
    }

    fn judge(&self, tool: &Description, arguments: &Raw) -> Judgement {
        let Some(origin) = &tool.origin else {
            let risk = match (tool.permission, tool.risk) {
                (Permission::NotNeeded, Risk::Low) => wharf_policy::Risk::Low,
                _ => wharf_policy::Risk::High,
            };
            let own = self.own_tool(tool);
            let attempt = match &own.1 {
                Some((origin, server)) => wharf_policy::Attempt::access((server, origin), &tool.name, arguments, risk),
                None => wharf_policy::Attempt::plain(&tool.name, arguments, risk),
            };
            let judgement = self.judged(&attempt, None);
            return self.granted(&own, judgement);
        };
        let context = self.context();
        let servers = context.as_ref().map(|context| context.servers.load());
        let known = servers.as_ref().and_then(|servers| servers.get_key_value(&*origin.provider));
        match known {
            Some((name, server)) => {
                let mut attempt = wharf_policy::Attempt::mcp(name, &origin.name, arguments);
                let kept = server.kept.load();
                (attempt.trust, attempt.origin) = (kept.settings.trust, &kept.settings.origin);
                self.judged(&attempt, Some(&origin.fingerprint))
            }
            // Somebody else's tool, of which no rule for servers speaks.
            None => self.judged(&wharf_policy::Attempt::plain(&tool.name, arguments, wharf_policy::Risk::High), None),
        }
    }

    fn judged(&self, attempt: &wharf_policy::Attempt<'_>, definition: Option<&Fingerprint>) -> Judgement {
        let State { policy, grants, pins, .. } = &mut *self.state();
        // No grant of this gate has an end, so that any moment will do.
        Judge { policy, grants, pins, now: self.began }.judge(attempt, definition)
    }

    /// The same, with what a person has said of a tool that is nobody's: it answers what would be asked, and no more.
    fn granted(&self, tool: &OwnTool, judgement: Judgement) -> Judgement {
        match (judgement, self.state().own_grants.get(tool)) {
            (Judgement::Ask { .. }, Some(lifetime)) => {
                Judgement::Allow { why: Reason::Grant(*lifetime), first_seen: false }
            }
            (judgement, _) => judgement,
        }
    }

    /// Remembers that this definition was called with everybody's consent.
    fn pin(&self, tool: &Description) {
        let Some((id, fingerprint)) = identity(tool) else { return };
        let Some(context) = self.context() else { return };
        let shelf = context.shelf.peek();
        // What is on the shelf may be another definition by now, which nobody has approved.
        let definition = shelf.tool(&id).filter(|tool| tool.fingerprint == fingerprint);
        let Some(definition) = definition.map(|tool| tool.definition.raw.clone()) else { return };
        let Ok(server) = context.server(id.server.as_str()) else { return };
        let approved = self.state().pins.approve((server.origin(), id), fingerprint, definition.get());
        match approved {
            Ok(()) => context.keep_pins(),
            Err(full) => tracing::warn!("{full}"),
        }
    }

    /// Decides without asking anybody, if that can be done.
    fn decide(&self, caller: &Caller, tool: &Arc<Description>, arguments: &Raw) -> Decided {
        match self.judge(tool, arguments) {
            Judgement::Allow { .. } | Judgement::Ask { .. } if tool.permission == Permission::Deferred => Decided::Yes,
            Judgement::Allow { why, first_seen } => {
                if first_seen {
                    self.pin(tool);
                }
                self.note(caller, tool, arguments, "allow", &why);
                Decided::Yes
            }
            Judgement::Deny { why } => {
                self.note(caller, tool, arguments, "deny", &why);
                Decided::No(Refusal::new(RefusalReason::Denied { rule: why.to_string() }))
            }
            Judgement::Ask { why, changed } => match self.consent(caller, changed.as_deref()) {
                Some(reason) => {
                    if changed.is_none() {
                        self.pin(tool);
                    }
                    self.note(caller, tool, arguments, "allow", &reason);
                    Decided::Yes
                }
                None => Decided::Ask { why, changed },
            },
        }
    }

    /// Why nobody need be asked, if so. A definition that has changed is called by a person who calls it, but is not
    /// approved by that; where asking is skipped it is not called at all, since somebody once approved another.
    fn consent(&self, caller: &Caller, changed: Option<&str>) -> Option<&'static str> {
        match (caller.consent, self.when_asked, changed) {
            (Consent::Given, ..) => Some("the caller has consented"),
            (Consent::Ask, WhenAsked::Allow, None) => Some("nobody is to be asked"),
            _ => None,
        }
    }

    /// Why a call is refused that nobody is there to be asked about.
    fn nobody(&self, tool: &Description, changed: Option<&str>) -> Refusal {
        if changed.is_some() {
            let hint = "a person has to look at what has changed and say yes to it";
            return Refusal::new(RefusalReason::DefinitionChanged).with_hint(hint);
        }
        let rule = self.rule_for(tool).ok().and_then(|rule| serde_json::to_string(&rule).ok()).unwrap_or_default();
        let refusal = Refusal::new(RefusalReason::NobodyToAsk { rule });
        match tool.about.as_ref().and_then(|about| about.reason) {
            Some(reason) => refusal.with_hint(reason),
            None => refusal,
        }
    }

    /// A tool that is nobody's, with the server that this call of it is about.
    fn own_tool(&self, tool: &Description) -> OwnTool {
        let server = tool.about.as_ref().and_then(|about| ServerName::new(&about.provider).ok());
        (Arc::clone(&tool.name), server.map(|server| (self.origin_of(&server), server)))
    }

    /// Where the server of this name is defined; the user's own configuration where there is no such server.
    fn origin_of(&self, server: &ServerName) -> ServerOrigin {
        let server = self.context().and_then(|context| context.server(server.as_str()).ok());
        server.map(|server| server.origin()).unwrap_or_default()
    }

    /// The rule that allows a tool, whatever its arguments.
    fn rule_for(&self, tool: &Description) -> Result<Rule, NoRule> {
        match identity(tool) {
            Some((id, _)) => {
                let rule = Rule::naming(&id, Action::Allow, &self.state().servers)?;
                rule.of_origin(&self.origin_of(&id.server))
            }
            None => match self.own_tool(tool).1 {
                None => Ok(Rule::new(&*tool.name, Action::Allow)),
                Some((origin, server)) => {
                    let pattern = Some(format!("server={server}"));
                    Rule { pattern, ..Rule::new(&*tool.name, Action::Allow) }.of_origin(&origin)
                }
            },
        }
    }

    /// Asks, unless the answer to another question has made this one needless. Ends with the host.
    async fn ask(self: Arc<Self>, pending: Pending) -> Result<(), Refusal> {
        let Some(context) = self.context() else { return Err(no(None)) };
        let (time, mut closing) = (context.options.limits.ask, context.closing.subscribe());
        drop(context);
        tokio::select! {
            answer = self.ask_in_turn(pending, time) => answer,
            _ = closing.wait_for(|closing| *closing) => Err(unanswered("the host is closed")),
        }
    }

    /// A question has its time, which begins when it is put: waiting for the turn costs nothing of it.
    async fn ask_in_turn(&self, pending: Pending, time: Duration) -> Result<(), Refusal> {
        let Pending { caller, tool, arguments } = pending;
        let _desk = self.desk.acquire().await;
        if !self.is_on_shelf(&tool) {
            return Err(Refusal::new(RefusalReason::ApprovalStale));
        }
        let (why, changed) = match self.decide(&caller, &tool, &arguments) {
            Decided::Yes => return Ok(()),
            Decided::No(refusal) => return Err(refusal),
            Decided::Ask { why, changed } => (why, changed),
        };
        let Some(asker) = &self.asker else { return Err(self.nobody(&tool, changed.as_deref())) };
        let asked_about = self.standing_of(&tool);
        let ask = self.question(&caller, &tool, &arguments, &why, changed.as_deref());
        let answer = match ask {
            Some(ask) => tokio::time::timeout(time, put(&**asker, |reply| Ask::Permission(ask, reply))).await,
            None => Ok(None),
        };
        let lifetime = answer
            .map_err(|_| unanswered("nobody answered in time"))
            .and_then(agreed)
            .inspect_err(|_| self.note(&caller, &tool, &arguments, "deny", &"the person said no, or nothing"))?;
        if !self.is_on_shelf(&tool) || !same(asked_about, self.standing_of(&tool)) {
            self.note(&caller, &tool, &arguments, "deny", &"the server is another one than was asked about");
            return Err(Refusal::new(RefusalReason::ApprovalStale));
        }
        match (lifetime, changed) {
            // This call and no other: the next one is asked about with the same difference.
            (Lifetime::Once, Some(_)) => {}
            (lifetime, _) => self.remember(&tool, lifetime),
        }
        self.note(&caller, &tool, &arguments, "allow", &"the person said yes");
        Ok(())
    }

    fn question(
        &self,
        caller: &Caller,
        tool: &Arc<Description>,
        arguments: &Raw,
        why: &Reason,
        before: Option<&str>,
    ) -> Option<PermissionAsk> {
        let id = match identity(tool) {
            Some((id, _)) => id,
            None => ToolId::new(&server_of(tool).or_else(|| ServerName::new("wharf").ok())?, &*tool.name),
        };
        let context = self.context()?;
        context.crier.tell(Event::Asked { server: id.server.clone(), kind: "permission" });
        let after = context.shelf.peek().tool(&id).map(|tool| tool.definition.raw.clone());
        let changed = before.zip(after).map(|(before, after)| difference(before, after.get()).to_string());
        let always = self.rule_for(tool);
        let (tool, arguments, caller) = (Arc::clone(tool), arguments.clone(), Arc::clone(&caller.name));
        let reason = match (why, tool.about.as_ref().and_then(|about| about.reason)) {
            (Reason::Default, Some(reason)) => reason.to_owned(),
            _ => why.to_string(),
        };
        Some(PermissionAsk { id, tool, arguments, caller, reason, changed, always })
    }

    /// Whether this very definition is what the server offers now. Tools that are nobody's are always what they are.
    fn is_on_shelf(&self, tool: &Description) -> bool {
        let Some((id, fingerprint)) = identity(tool) else { return true };
        let Some(context) = self.context() else { return false };
        let catalog = context.shelf.peek();
        catalog.tool(&id).is_some_and(|tool| tool.fingerprint == fingerprint)
    }

    /// Which server and which connection a tool has now; an answer is about these.
    fn standing_of(&self, tool: &Description) -> Option<(u64, Option<u64>)> {
        let server = self.context()?.server(server_of(tool)?.as_str()).ok()?;
        Some((server.generation, server.passage().map(|passage| passage.epoch)))
    }

    fn remember(&self, tool: &Description, lifetime: Lifetime) {
        self.pin(tool);
        if lifetime == Lifetime::Once {
            return;
        }
        let rule = (lifetime == Lifetime::Always).then(|| self.rule_for(tool));
        // What cannot be written down lasts as long as the host.
        let lifetime = if let Some(Err(_)) = rule { Lifetime::Session } else { lifetime };
        match identity(tool) {
            Some((tool, definition)) => {
                let origin = self.origin_of(&tool.server);
                let grant = Grant { tool, origin, arguments: GrantScope::Any, lifetime, definition, until: None };
                self.state().grants.add(grant);
            }
            None => {
                let own = self.own_tool(tool);
                self.state().own_grants.insert(own, lifetime);
            }
        }
        match (rule, &self.sink) {
            (Some(Ok(rule)), Some(sink)) => sink(&rule),
            (Some(Err(why)), _) => tracing::warn!("it holds for this session only: {why}"),
            _ => {}
        }
    }

    fn note(
        &self,
        caller: &Caller,
        tool: &Description,
        arguments: &Raw,
        verdict: &'static str,
        why: &dyn std::fmt::Display,
    ) {
        if !self.audits {
            return;
        }
        let Some(context) = self.context() else { return };
        let Some(audit) = &context.audit else { return };
        let provider = tool.origin.as_ref().map(|origin| &*origin.provider);
        let server = provider.or(tool.about.as_ref().map(|about| &*about.provider));
        let name = tool.origin.as_ref().map_or(&*tool.name, |origin| &*origin.name);
        audit.decided((server, name), arguments, caller, (verdict, &why.to_string()));
    }
}

/// How long a person's yes holds, or the refusal that is their no.
fn agreed(answer: Option<PermissionAnswer>) -> Result<Lifetime, Refusal> {
    match answer {
        Some(PermissionAnswer::Once) => Ok(Lifetime::Once),
        Some(PermissionAnswer::Session) => Ok(Lifetime::Session),
        Some(PermissionAnswer::Always) => Ok(Lifetime::Always),
        Some(PermissionAnswer::NoBecause(why)) => Err(no(Some(why))),
        Some(PermissionAnswer::No) | None => Err(no(None)),
    }
}

fn unanswered(why: &str) -> Refusal {
    Refusal::new(RefusalReason::Other(why.to_owned()))
}

fn no(because: Option<String>) -> Refusal {
    Refusal::new(RefusalReason::SaidNo { because })
}

/// Whether it is the server that was asked about. One that was not connected and is, or is not any more, is the same.
fn same(asked: Option<(u64, Option<u64>)>, now: Option<(u64, Option<u64>)>) -> bool {
    match (asked, now) {
        (None, None) => true,
        (Some((asked, before)), Some((server, after))) => {
            asked == server && before.zip(after).is_none_or(|(before, after)| before == after)
        }
        _ => false,
    }
}

enum Decided {
    Yes,
    No(Refusal),
    Ask { why: Reason, changed: Option<Arc<str>> },
}

/// The server a tool is of, or that its call is about.
fn server_of(tool: &Description) -> Option<ServerName> {
    let provider = tool.origin.as_ref().map(|origin| &origin.provider);
    ServerName::new(provider.or(tool.about.as_ref().map(|about| &about.provider))?).ok()
}

fn identity(tool: &Description) -> Option<(ToolId, Fingerprint)> {
    let origin = tool.origin.as_ref()?;
    Some((ToolId::new(&server_of(tool)?, Arc::clone(&origin.name)), origin.fingerprint))
}

/// The gate as the registry and the host hold it.
pub(crate) struct SharedGate(pub Arc<RuleGate>);

impl Gate for SharedGate {
    fn check(&self, attempt: Attempt<'_>) -> Check {
        let Attempt { caller, tool, arguments } = attempt;
        match self.0.decide(caller, tool, arguments) {
            Decided::Yes => Check::Pass,
            Decided::No(refusal) => Check::Refuse(refusal),
            Decided::Ask { changed, .. } if self.0.asker.is_none() => {
                let refusal = self.0.nobody(tool, changed.as_deref());
                self.0.note(caller, tool, arguments, "deny", &"nobody is there to ask");
                Check::Refuse(refusal)
            }
            Decided::Ask { .. } => {
                let (caller, tool, arguments) = (caller.clone(), Arc::clone(tool), arguments.clone());
                Check::Ask(Box::pin(Arc::clone(&self.0).ask(Pending { caller, tool, arguments })))
            }
        }
    }
}
