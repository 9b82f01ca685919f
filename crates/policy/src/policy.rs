//! Compiled permission rules.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use wharf_spec::{ServerName, ServerOrigin};

use crate::argument::LazyArguments;
use crate::clause::RuleClause;
use crate::fold::with_folded;
use crate::glob_shape::{glob_covers, rests_after_prefix};
use crate::pattern::ArgumentPattern;
use crate::target::{NameReading, RuleTarget, unambiguous_reading};
use crate::{
    AttemptKind, CallAttempt, DecisionReason, PolicyDecision, RiskLevel, RuleAction, RuleAuthority, RuleProblem,
    RuleProblemKind, SourcedRule, Verdict,
};

/// A set of rules, compiled for the configured servers.
///
/// The order of the rules has no meaning. A matching deny always decides. Otherwise the most precise of the matching
/// ask and allow rules decides, the ask at a tie. Otherwise the server's trust or a low risk allows the call. Otherwise
/// the user is asked.
#[derive(Debug, Default)]
pub struct Policy {
    rules: Vec<CompiledRule>,
    servers: HashMap<ServerName, Vec<Arc<RuleClause>>>,
    plain: Vec<Arc<RuleClause>>,
    problems: Vec<RuleProblem>,
    /// Unreadable rules of a project.
    doubts: Vec<Arc<SourcedRule>>,
}

/// A rule that has been parsed and may apply.
#[derive(Debug)]
struct CompiledRule {
    index: usize,
    rule: Arc<SourcedRule>,
    target: RuleTarget,
    pattern: Option<Arc<ArgumentPattern>>,
}

impl Policy {
    /// Compiles rules for the configured servers. [`Policy::problems`] lists the problems of the rules.
    pub fn compile(rules: Vec<SourcedRule>, servers: &[ServerName]) -> Self {
        let mut policy = Self::default();
        for (index, rule) in rules.into_iter().enumerate() {
            policy.add(index, Arc::new(rule), servers);
        }
        policy.report_ineffective_rules(servers);
        policy.problems.sort_by_key(|problem| problem.index);
        let doubts = || policy.doubts.iter().map(|rule| RuleClause::asking_for_unreadable(rule));
        let clauses_for =
            |server| sort_clauses(policy.rules.iter().flat_map(|rule| rule.clauses_for(server)).chain(doubts()));
        policy.servers = servers.iter().map(|server| (server.clone(), clauses_for(server))).collect();
        policy.plain = sort_clauses(policy.rules.iter().filter_map(CompiledRule::plain_clause));
        policy
    }

    /// Returns the problems of the rules, in rule order.
    pub fn problems(&self) -> &[RuleProblem] {
        &self.problems
    }

    /// Decides about an attempt.
    ///
    /// Decodes the arguments only if a rule for the tool has a pattern, and does not allocate otherwise. For a server
    /// that the rules were not compiled for, no allow rule applies.
    pub fn decide(&self, attempt: &CallAttempt<'_>) -> PolicyDecision {
        match (attempt.server, attempt.kind) {
            (None, _) => decide_by_clauses(&self.plain, attempt),
            (Some(server), AttemptKind::Call) => decide_by_clauses(&self.clauses_of(server), attempt),
            (Some(server), AttemptKind::Access) => {
                let denies = self.server_wide_denies(server);
                let mut clauses: Vec<_> = denies.into_iter().chain(self.plain.iter().cloned()).collect();
                RuleClause::sort(&mut clauses);
                decide_by_clauses(&clauses, attempt)
            }
        }
    }

    /// Returns the rule that denies everything a server of this origin offers: tools, resources and prompts.
    pub fn server_denial(&self, server: &ServerName, origin: &ServerOrigin) -> Option<Arc<SourcedRule>> {
        let mut denies = self.server_wide_denies(server).into_iter();
        denies
            .find(|clause| clause.has_no_pattern() && clause.applies_to_origin(origin))
            .map(|clause| clause.rule.clone())
    }

    /// Returns the denies that apply to every tool of a server.
    fn server_wide_denies(&self, server: &ServerName) -> Vec<Arc<RuleClause>> {
        let is_whole = |clause: &&Arc<RuleClause>| clause.action() == RuleAction::Deny && clause.names_every_tool();
        self.clauses_of(server).iter().filter(is_whole).cloned().collect()
    }

    fn clauses_of(&self, server: &ServerName) -> Cow<'_, [Arc<RuleClause>]> {
        match self.servers.get(server) {
            Some(clauses) => Cow::Borrowed(clauses),
            None => Cow::Owned(self.strict_clauses_for(server)),
        }
    }

    /// Returns the allow rules that apply to tools of a server of this origin. Another rule may still ask or deny.
    pub fn allow_rules_for(&self, server: &ServerName, origin: &ServerOrigin) -> Vec<Arc<SourcedRule>> {
        let clauses = self.servers.get(server).into_iter().flatten();
        let allows = clauses.filter(|clause| clause.action() == RuleAction::Allow && clause.applies_to_origin(origin));
        allows.map(|clause| clause.rule.clone()).collect()
    }

    fn add(&mut self, index: usize, rule: Arc<SourcedRule>, servers: &[ServerName]) {
        let mut compiled = CompiledRule { index, rule, target: RuleTarget::Plain, pattern: None };
        let found = compiled.read(servers);
        self.problems.extend(found.iter().map(|kind| compiled.to_problem(kind.clone())));
        if found.iter().all(|kind| compiled.is_tolerable(kind)) {
            self.rules.push(compiled);
        } else if compiled.rule.origin.authority == RuleAuthority::Project
            && found.iter().any(RuleProblemKind::is_unreadable)
        {
            self.doubts.push(compiled.rule);
        }
    }

    /// Reports the rules that can never match and those that are always overruled.
    fn report_ineffective_rules(&mut self, servers: &[ServerName]) {
        for rule in &self.rules {
            let kind = match &rule.target {
                // A server that is defined in a file is not configured in every directory.
                RuleTarget::Mcp(readings)
                    if rule.rule.rule.defined_in.is_none()
                        && !readings.iter().any(|reading| reading.matches_any_server(servers)) =>
                {
                    RuleProblemKind::NoServer
                }
                _ => match self.rules.iter().find(|other| other.overrules(rule, servers)) {
                    Some(other) => RuleProblemKind::Shadowed(other.rule.clone()),
                    None => continue,
                },
            };
            self.problems.push(rule.to_problem(kind));
        }
    }

    /// Returns all clauses for a server except the allows.
    fn strict_clauses_for(&self, server: &ServerName) -> Vec<Arc<RuleClause>> {
        let strict = self.rules.iter().filter(|rule| rule.rule.rule.action != RuleAction::Allow);
        let doubts = self.doubts.iter().map(|rule| RuleClause::asking_for_unreadable(rule));
        sort_clauses(strict.flat_map(|rule| rule.clauses_for(server)).chain(doubts))
    }
}

fn sort_clauses(clauses: impl Iterator<Item = RuleClause>) -> Vec<Arc<RuleClause>> {
    let mut list: Vec<_> = clauses.map(Arc::new).collect();
    RuleClause::sort(&mut list);
    list
}

fn decide_by_clauses(clauses: &[Arc<RuleClause>], attempt: &CallAttempt<'_>) -> PolicyDecision {
    let arguments = LazyArguments::new(attempt.arguments);
    let holds = |clause: &&Arc<RuleClause>| clause.matches_call(attempt.tool, &arguments);
    let deciding = clauses.iter().filter(|clause| clause.applies_to_origin(attempt.origin)).find(holds);
    let (verdict, reason) = match deciding {
        Some(clause) => (verdict_for_action(clause.action()), DecisionReason::Rule(clause.rule.clone())),
        None if attempt.trust => (Verdict::Allow, DecisionReason::Trust),
        None if attempt.risk == RiskLevel::Low => (Verdict::Allow, DecisionReason::LowRisk),
        None => {
            let elsewhere = clauses.iter().filter(|clause| clause.action() == RuleAction::Allow).find(holds);
            (
                Verdict::Ask,
                elsewhere.map_or(DecisionReason::Default, |clause| DecisionReason::Elsewhere(clause.rule.clone())),
            )
        }
    };
    if verdict == Verdict::Allow
        && let Some(near) = find_near_deny(clauses, deciding, attempt, &arguments)
    {
        return PolicyDecision { verdict: Verdict::Ask, reason: DecisionReason::NearDeny(near.rule.clone()) };
    }
    PolicyDecision { verdict, reason }
}

/// Returns a deny that an attempt avoids only by its spelling. If an allow rule names the tool exactly, the tool's name
/// is not compared with lookalikes.
fn find_near_deny<'c>(
    clauses: &'c [Arc<RuleClause>],
    deciding: Option<&Arc<RuleClause>>,
    attempt: &CallAttempt<'_>,
    arguments: &LazyArguments<'_>,
) -> Option<&'c Arc<RuleClause>> {
    let CallAttempt { tool, origin, .. } = *attempt;
    let denies = clauses.iter().take_while(|clause| clause.action() == RuleAction::Deny);
    let mut denies = denies.filter(|clause| clause.applies_to_origin(origin)).peekable();
    denies.peek()?;
    let by_name = deciding.is_some_and(|clause| clause.is_exact());
    with_folded(tool, |folded| {
        denies.find(|deny| (!by_name || deny.matches_tool(tool)) && deny.nearly_matches_call(tool, folded, arguments))
    })
}

fn verdict_for_action(action: RuleAction) -> Verdict {
    match action {
        RuleAction::Allow => Verdict::Allow,
        RuleAction::Ask => Verdict::Ask,
        RuleAction::Deny => Verdict::Deny,
    }
}

impl CompiledRule {
    /// Parses the rule and returns its problems.
    fn read(&mut self, servers: &[ServerName]) -> Vec<RuleProblemKind> {
        match RuleTarget::parse(&self.rule.rule.tool) {
            Ok(target) => self.target = target,
            Err(kind) => return vec![kind],
        }
        let mut found = Vec::new();
        if self.rule.rule.defined_in.as_ref().is_some_and(|file| !Path::new(file).is_absolute()) {
            found.push(RuleProblemKind::BadFile("`definedIn` is not an absolute path"));
        }
        match self.rule.rule.pattern.as_deref().map(ArgumentPattern::parse).transpose() {
            Ok(pattern) => self.pattern = pattern.map(Arc::new),
            Err(kind) => found.push(kind),
        }
        if self.rule.rule.action == RuleAction::Allow {
            found.extend(self.narrow_allow(servers));
        }
        found
    }

    /// Reports whether the rule applies despite this problem. Without its pattern a deny or ask is only stricter, but
    /// an allow would be wider.
    fn is_tolerable(&self, kind: &RuleProblemKind) -> bool {
        match kind {
            RuleProblemKind::BadPattern(_) => self.rule.rule.action != RuleAction::Allow,
            RuleProblemKind::PlainAllow => true,
            _ => false,
        }
    }

    /// Restricts an allow rule to one reading, or returns the problem that makes it invalid.
    fn narrow_allow(&mut self, servers: &[ServerName]) -> Option<RuleProblemKind> {
        if self.rule.origin.authority == RuleAuthority::Project {
            return Some(RuleProblemKind::ProjectAllow);
        }
        match &self.target {
            RuleTarget::Plain => {
                (!rests_after_prefix(&self.rule.rule.tool, "mcp__").is_empty()).then_some(RuleProblemKind::PlainAllow)
            }
            RuleTarget::Mcp(readings) => match unambiguous_reading(readings, servers).cloned() {
                Ok(reading) => {
                    self.target = RuleTarget::Mcp(vec![reading]);
                    None
                }
                // The server is not configured here. The rule applies where the defining file is in use.
                Err(RuleProblemKind::NoServer) if self.rule.rule.defined_in.is_some() => {
                    self.target = RuleTarget::Mcp(Vec::new());
                    None
                }
                Err(kind) => Some(kind),
            },
        }
    }

    /// Returns the clauses of the rule for a server's tools. A deny or ask with a plain name also matches full tool
    /// names (`mcp__server__tool`), so that a deny of `*` denies all tools.
    fn clauses_for(&self, server: &ServerName) -> Vec<RuleClause> {
        match &self.target {
            RuleTarget::Mcp(readings) => {
                let fitting = readings.iter().filter(|reading| reading.server.matches(server.as_str()));
                fitting.map(|reading| RuleClause::new(&self.rule, reading, self.pattern.clone())).collect()
            }
            RuleTarget::Plain if self.rule.rule.action == RuleAction::Allow => Vec::new(),
            RuleTarget::Plain => {
                let rests = rests_after_prefix(&self.rule.rule.tool, &format!("mcp__{server}__"));
                rests.into_iter().map(|rest| RuleClause::plain(&self.rule, rest, self.pattern.clone())).collect()
            }
        }
    }

    /// Returns the clause of the rule for tools that belong to no server.
    fn plain_clause(&self) -> Option<RuleClause> {
        let holds = matches!(self.target, RuleTarget::Plain) || self.rule.rule.action != RuleAction::Allow;
        holds.then(|| RuleClause::plain(&self.rule, &self.rule.rule.tool, self.pattern.clone()))
    }

    /// Reports whether the rule always overrules another: as a deny that covers the other, or as an ask for the same
    /// calls.
    fn overrules(&self, other: &Self, servers: &[ServerName]) -> bool {
        let (own, others) = (&self.rule.rule, &other.rule.rule);
        let same_pattern = own.pattern == others.pattern;
        if own.defined_in.is_some() && own.defined_in != others.defined_in {
            return false;
        }
        match (own.action, others.action) {
            (RuleAction::Deny, RuleAction::Allow | RuleAction::Ask) => {
                (self.pattern.is_none() || same_pattern) && self.covers(other, servers)
            }
            (RuleAction::Ask, RuleAction::Allow) => same_pattern && own.tool == others.tool,
            _ => false,
        }
    }

    fn covers(&self, other: &Self, servers: &[ServerName]) -> bool {
        match (&self.target, &other.target) {
            (RuleTarget::Mcp(mine), RuleTarget::Mcp(others)) => {
                let is_covered = |reading: &NameReading| mine.iter().any(|own| own.covers(reading));
                others.iter().filter(|reading| reading.matches_any_server(servers)).all(is_covered)
            }
            (RuleTarget::Plain, RuleTarget::Mcp(others)) => {
                let is_covered = |reading: &NameReading| glob_covers(&self.rule.rule.tool, &reading.spelling());
                others.iter().filter(|reading| reading.matches_any_server(servers)).all(is_covered)
            }
            (RuleTarget::Plain, RuleTarget::Plain) => glob_covers(&self.rule.rule.tool, &other.rule.rule.tool),
            (RuleTarget::Mcp(_), RuleTarget::Plain) => false,
        }
    }

    fn to_problem(&self, kind: RuleProblemKind) -> RuleProblem {
        RuleProblem { index: self.index, rule: self.rule.clone(), kind }
    }
}
