//! What a set of rules means.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use wharf_spec::{ServerName, ServerOrigin, ToolId};

use crate::argument::Arguments;
use crate::clause::Clause;
use crate::fold::with_folded;
use crate::pattern::Pattern;
use crate::shape::{covers, rests};
use crate::target::{Reading, Target, admitted};
use crate::{
    Action, Attempt, AttemptKind, Decision, Problem, ProblemKind, Reason, Risk, SourcedRule, Standing, Verdict,
};

/// What a set of rules means for the servers there are.
///
/// The order of the rules has no meaning. A matching deny always decides; else the most precise of the matching ask and
/// allow rules, the ask at a tie; else the server's trust; else a person is asked.
#[derive(Debug, Default)]
pub struct Policy {
    rules: Vec<Compiled>,
    servers: HashMap<ServerName, Vec<Arc<Clause>>>,
    plain: Vec<Arc<Clause>>,
    problems: Vec<Problem>,
    /// The rules of a project that cannot be read.
    doubts: Vec<Arc<SourcedRule>>,
}

/// A rule that has been read and may hold.
#[derive(Debug)]
struct Compiled {
    index: usize,
    rule: Arc<SourcedRule>,
    target: Target,
    pattern: Option<Arc<Pattern>>,
}

impl Policy {
    /// Reads rules against the servers there are. What is wrong with a rule is told by [`Policy::problems`].
    pub fn compile(rules: Vec<SourcedRule>, servers: &[ServerName]) -> Self {
        let mut policy = Self::default();
        for (index, rule) in rules.into_iter().enumerate() {
            policy.add(index, Arc::new(rule), servers);
        }
        policy.report_idle(servers);
        policy.problems.sort_by_key(|problem| problem.index);
        let doubts = || policy.doubts.iter().map(|rule| Clause::in_doubt(rule));
        let clauses_for =
            |server| sorted(policy.rules.iter().flat_map(|rule| rule.clauses_for(server)).chain(doubts()));
        policy.servers = servers.iter().map(|server| (server.clone(), clauses_for(server))).collect();
        policy.plain = sorted(policy.rules.iter().filter_map(Compiled::plain_clause));
        policy
    }

    /// What is wrong with the rules, in their order.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Decides about an attempt.
    ///
    /// Looks into the arguments only if a rule that fits the tool has a pattern, and allocates nothing otherwise. No
    /// allow holds for a server that the rules were not read against.
    pub fn decide(&self, attempt: &Attempt<'_>) -> Decision {
        match (attempt.server, attempt.kind) {
            (None, _) => decide_by(&self.plain, attempt),
            (Some(server), AttemptKind::Call) => decide_by(&self.clauses_of(server), attempt),
            (Some(server), AttemptKind::Access) => {
                let denies = self.whole_denies(server);
                let mut clauses: Vec<_> = denies.into_iter().chain(self.plain.iter().cloned()).collect();
                Clause::sort(&mut clauses);
                decide_by(&clauses, attempt)
            }
        }
    }

    /// The rule that denies everything a server of this origin offers: tools, resources and prompts.
    pub fn denial(&self, server: &ServerName, origin: &ServerOrigin) -> Option<Arc<SourcedRule>> {
        let mut denies = self.whole_denies(server).into_iter();
        denies.find(|clause| clause.has_no_pattern() && clause.reaches(origin)).map(|clause| clause.rule.clone())
    }

    /// The denies that are about every tool of a server.
    fn whole_denies(&self, server: &ServerName) -> Vec<Arc<Clause>> {
        let is_whole = |clause: &&Arc<Clause>| clause.action() == Action::Deny && clause.names_every_tool();
        self.clauses_of(server).iter().filter(is_whole).cloned().collect()
    }

    fn clauses_of(&self, server: &ServerName) -> Cow<'_, [Arc<Clause>]> {
        match self.servers.get(server) {
            Some(clauses) => Cow::Borrowed(clauses),
            None => Cow::Owned(self.strict_clauses_for(server)),
        }
    }

    /// The allow rules that reach tools of a server that is defined there. Another rule may still ask or deny.
    pub fn allows(&self, server: &ServerName, origin: &ServerOrigin) -> Vec<Arc<SourcedRule>> {
        let clauses = self.servers.get(server).into_iter().flatten();
        let allows = clauses.filter(|clause| clause.action() == Action::Allow && clause.reaches(origin));
        allows.map(|clause| clause.rule.clone()).collect()
    }

    /// The rules that match none of these tools, of those that name a server that is there: all the tools are to be
    /// given, or rules are blamed for what is only not known yet.
    pub fn unmatched(&self, tools: &[ToolId]) -> Vec<Problem> {
        let mut idle: Vec<&Compiled> = self.rules.iter().filter(|rule| matches!(rule.target, Target::Mcp(_))).collect();
        idle.retain(|rule| !self.problems.iter().any(|problem| problem.index == rule.index));
        idle.retain(|rule| !tools.iter().any(|tool| rule.names(tool)));
        idle.into_iter().map(|rule| rule.problem(ProblemKind::NoTool)).collect()
    }

    fn add(&mut self, index: usize, rule: Arc<SourcedRule>, servers: &[ServerName]) {
        let mut compiled = Compiled { index, rule, target: Target::Plain, pattern: None };
        let found = compiled.read(servers);
        self.problems.extend(found.iter().map(|kind| compiled.problem(kind.clone())));
        if found.iter().all(|kind| compiled.survives(kind)) {
            self.rules.push(compiled);
        } else if compiled.rule.origin.standing == Standing::Project && found.iter().any(ProblemKind::is_unreadable) {
            self.doubts.push(compiled.rule);
        }
    }

    /// Reports the rules that can never match, and those that can never decide.
    fn report_idle(&mut self, servers: &[ServerName]) {
        for rule in &self.rules {
            let kind = match &rule.target {
                // A server that is defined in some file is not configured in every directory.
                Target::Mcp(readings)
                    if rule.rule.rule.defined_in.is_none() && !readings.iter().any(|reading| reading.fits(servers)) =>
                {
                    ProblemKind::NoServer
                }
                _ => match self.rules.iter().find(|other| other.goes_before(rule, servers)) {
                    Some(other) => ProblemKind::Shadowed(other.rule.clone()),
                    None => continue,
                },
            };
            self.problems.push(rule.problem(kind));
        }
    }

    /// Every clause but the allows about tools of a server.
    fn strict_clauses_for(&self, server: &ServerName) -> Vec<Arc<Clause>> {
        let strict = self.rules.iter().filter(|rule| rule.rule.rule.action != Action::Allow);
        let doubts = self.doubts.iter().map(|rule| Clause::in_doubt(rule));
        sorted(strict.flat_map(|rule| rule.clauses_for(server)).chain(doubts))
    }
}

fn sorted(clauses: impl Iterator<Item = Clause>) -> Vec<Arc<Clause>> {
    let mut list: Vec<_> = clauses.map(Arc::new).collect();
    Clause::sort(&mut list);
    list
}

fn decide_by(clauses: &[Arc<Clause>], attempt: &Attempt<'_>) -> Decision {
    let arguments = Arguments::new(attempt.arguments);
    let holds = |clause: &&Arc<Clause>| clause.holds(attempt.tool, &arguments);
    let deciding = clauses.iter().filter(|clause| clause.reaches(attempt.origin)).find(holds);
    let (verdict, reason) = match deciding {
        Some(clause) => (verdict(clause.action()), Reason::Rule(clause.rule.clone())),
        None if attempt.trust => (Verdict::Allow, Reason::Trust),
        None if attempt.risk == Risk::Low => (Verdict::Allow, Reason::LowRisk),
        None => {
            let elsewhere = clauses.iter().filter(|clause| clause.action() == Action::Allow).find(holds);
            (Verdict::Ask, elsewhere.map_or(Reason::Default, |clause| Reason::Elsewhere(clause.rule.clone())))
        }
    };
    if verdict == Verdict::Allow
        && let Some(near) = near_deny(clauses, deciding, attempt, &arguments)
    {
        return Decision { verdict: Verdict::Ask, reason: Reason::NearDeny(near.rule.clone()) };
    }
    Decision { verdict, reason }
}

/// A deny that an attempt escapes only by how it is written. A tool that is allowed by its very name is not taken for
/// another one.
fn near_deny<'c>(
    clauses: &'c [Arc<Clause>],
    deciding: Option<&Arc<Clause>>,
    attempt: &Attempt<'_>,
    arguments: &Arguments<'_>,
) -> Option<&'c Arc<Clause>> {
    let Attempt { tool, origin, .. } = *attempt;
    let denies = clauses.iter().take_while(|clause| clause.action() == Action::Deny);
    let mut denies = denies.filter(|clause| clause.reaches(origin)).peekable();
    denies.peek()?;
    let by_name = deciding.is_some_and(|clause| clause.is_exact());
    with_folded(tool, |folded| {
        denies.find(|deny| (!by_name || deny.names(tool)) && deny.nearly_holds(tool, folded, arguments))
    })
}

fn verdict(action: Action) -> Verdict {
    match action {
        Action::Allow => Verdict::Allow,
        Action::Ask => Verdict::Ask,
        Action::Deny => Verdict::Deny,
    }
}

impl Compiled {
    /// Reads the rule, and tells what is wrong with it.
    fn read(&mut self, servers: &[ServerName]) -> Vec<ProblemKind> {
        match Target::parse(&self.rule.rule.tool) {
            Ok(target) => self.target = target,
            Err(kind) => return vec![kind],
        }
        let mut found = Vec::new();
        if self.rule.rule.defined_in.as_ref().is_some_and(|file| !Path::new(file).is_absolute()) {
            found.push(ProblemKind::BadFile("`definedIn` is not an absolute path"));
        }
        match self.rule.rule.pattern.as_deref().map(Pattern::parse).transpose() {
            Ok(pattern) => self.pattern = pattern.map(Arc::new),
            Err(kind) => found.push(kind),
        }
        if self.rule.rule.action == Action::Allow {
            found.extend(self.narrow(servers));
        }
        found
    }

    /// Whether it holds all the same. Without its pattern a strict rule is only stricter; an allow would be wider.
    fn survives(&self, kind: &ProblemKind) -> bool {
        match kind {
            ProblemKind::BadPattern(_) => self.rule.rule.action != Action::Allow,
            ProblemKind::PlainAllow => true,
            _ => false,
        }
    }

    /// Reduces an allow to what it may allow, or tells why there is nothing.
    fn narrow(&mut self, servers: &[ServerName]) -> Option<ProblemKind> {
        if self.rule.origin.standing == Standing::Project {
            return Some(ProblemKind::ProjectAllow);
        }
        match &self.target {
            Target::Plain => (!rests(&self.rule.rule.tool, "mcp__").is_empty()).then_some(ProblemKind::PlainAllow),
            Target::Mcp(readings) => match admitted(readings, servers).cloned() {
                Ok(reading) => {
                    self.target = Target::Mcp(vec![reading]);
                    None
                }
                // Not configured here: it holds where its file is.
                Err(ProblemKind::NoServer) if self.rule.rule.defined_in.is_some() => {
                    self.target = Target::Mcp(Vec::new());
                    None
                }
                Err(kind) => Some(kind),
            },
        }
    }

    /// What it says of a server's tools. A strict rule with a plain name holds for names as they are spelt, too: a
    /// deny of `*` denies.
    fn clauses_for(&self, server: &ServerName) -> Vec<Clause> {
        match &self.target {
            Target::Mcp(readings) => {
                let fitting = readings.iter().filter(|reading| reading.server.matches(server.as_str()));
                fitting.map(|reading| Clause::new(&self.rule, reading, self.pattern.clone())).collect()
            }
            Target::Plain if self.rule.rule.action == Action::Allow => Vec::new(),
            Target::Plain => {
                let rests = rests(&self.rule.rule.tool, &format!("mcp__{server}__"));
                rests.into_iter().map(|rest| Clause::plain(&self.rule, rest, self.pattern.clone())).collect()
            }
        }
    }

    /// What it says of tools that belong to no server.
    fn plain_clause(&self) -> Option<Clause> {
        let holds = matches!(self.target, Target::Plain) || self.rule.rule.action != Action::Allow;
        holds.then(|| Clause::plain(&self.rule, &self.rule.rule.tool, self.pattern.clone()))
    }

    /// Whether it is about this tool, whatever the arguments.
    fn names(&self, tool: &ToolId) -> bool {
        self.clauses_for(&tool.server).iter().any(|clause| clause.names(&tool.tool))
    }

    /// Whether it decides wherever another matches: as a deny that covers the other, or as an ask for just the same.
    fn goes_before(&self, other: &Self, servers: &[ServerName]) -> bool {
        let (own, others) = (&self.rule.rule, &other.rule.rule);
        let same_pattern = own.pattern == others.pattern;
        if own.defined_in.is_some() && own.defined_in != others.defined_in {
            return false;
        }
        match (own.action, others.action) {
            (Action::Deny, Action::Allow | Action::Ask) => {
                (self.pattern.is_none() || same_pattern) && self.covers(other, servers)
            }
            (Action::Ask, Action::Allow) => same_pattern && own.tool == others.tool,
            _ => false,
        }
    }

    fn covers(&self, other: &Self, servers: &[ServerName]) -> bool {
        match (&self.target, &other.target) {
            (Target::Mcp(mine), Target::Mcp(others)) => {
                let is_covered = |reading: &Reading| mine.iter().any(|own| own.covers(reading));
                others.iter().filter(|reading| reading.fits(servers)).all(is_covered)
            }
            (Target::Plain, Target::Mcp(others)) => {
                let is_covered = |reading: &Reading| covers(&self.rule.rule.tool, &reading.spelling());
                others.iter().filter(|reading| reading.fits(servers)).all(is_covered)
            }
            (Target::Plain, Target::Plain) => covers(&self.rule.rule.tool, &other.rule.rule.tool),
            (Target::Mcp(_), Target::Plain) => false,
        }
    }

    fn problem(&self, kind: ProblemKind) -> Problem {
        Problem { index: self.index, rule: self.rule.clone(), kind }
    }
}
