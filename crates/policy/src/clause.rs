//! One rule in one reading, ready to be held against an attempt.

use std::cmp::Reverse;
use std::sync::Arc;

use wharf_spec::{Glob, ServerOrigin};

use crate::argument::Arguments;
use crate::fold::fold;
use crate::pattern::Pattern;
use crate::scope::Scope;
use crate::target::{Name, Reading};
use crate::{Action, Rule, SourcedRule};

/// One rule in one reading, for a server that is already known to fit.
#[derive(Debug)]
pub(crate) struct Clause {
    pub rule: Arc<SourcedRule>,
    tool: Name,
    pattern: Option<Arc<Pattern>>,
    precision: Precision,
    twin: Twin,
    scope: Scope,
}

/// How precise a clause is: the greater goes before the smaller, field by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Precision {
    /// It names one tool.
    exact: bool,
    /// Characters it fixes in the names of server and tool.
    name: usize,
    /// It says something of the arguments.
    argued: bool,
    /// Characters it fixes there.
    arguments: usize,
}

/// What names look alike to what a clause means.
#[derive(Debug)]
struct Twin {
    folded: Glob,
    /// The name is folded as it stands, so that only a name that is not can be a twin.
    is_same: bool,
}

impl Clause {
    /// The clause of a rule in one of its readings.
    pub fn new(rule: &Arc<SourcedRule>, reading: &Reading, pattern: Option<Arc<Pattern>>) -> Self {
        let name = reading.server.literals() + reading.tool.literals();
        let scope = Scope::new(&rule.rule, Some(reading));
        Self { scope, ..Self::with(rule, reading.tool.clone(), (reading.is_exact(), name), pattern) }
    }

    /// The clause of a rule that is about names as a whole, or of what is left of it after a beginning.
    pub fn plain(rule: &Arc<SourcedRule>, rest: &str, pattern: Option<Arc<Pattern>>) -> Self {
        let tool = Name::new(rest);
        let is_exact = rest == rule.rule.tool && matches!(tool, Name::Exact(_));
        let literals = tool.literals();
        Self::with(rule, tool, (is_exact, literals), pattern)
    }

    /// The clause in the place of a project's rule that cannot be read: every call of the project's own servers is asked
    /// about, whatever allows it. What the rule denies is not known, and the user's own servers are not the project's.
    pub fn in_doubt(rule: &SourcedRule) -> Self {
        let rule = Arc::new(SourcedRule {
            rule: Rule { action: Action::Ask, ..rule.rule.clone() },
            origin: rule.origin.clone(),
        });
        Self { scope: Scope::NotUser, ..Self::with(&rule, Name::Any, (true, usize::MAX), None) }
    }

    fn with(rule: &Arc<SourcedRule>, tool: Name, (exact, name): (bool, usize), pattern: Option<Arc<Pattern>>) -> Self {
        let arguments = pattern.as_ref().map_or(0, |pattern| pattern.literals());
        let precision = Precision { exact, name, argued: pattern.is_some(), arguments };
        let text = tool.text();
        let folded = fold(&text);
        let twin = Twin { is_same: folded == text, folded: Glob::new(&folded) };
        Self { rule: rule.clone(), tool, pattern, precision, twin, scope: Scope::new(&rule.rule, None) }
    }

    pub fn action(&self) -> Action {
        self.rule.rule.action
    }

    /// Whether it is about servers of this origin.
    pub fn reaches(&self, origin: &ServerOrigin) -> bool {
        self.scope.covers(origin)
    }

    /// Whether it names one tool and no other.
    pub fn is_exact(&self) -> bool {
        self.precision.exact
    }

    /// Whether it is about every tool of its server.
    pub fn names_every_tool(&self) -> bool {
        matches!(self.tool, Name::Any)
    }

    /// Whether it is about every call of them, whatever the arguments.
    pub fn has_no_pattern(&self) -> bool {
        self.pattern.is_none()
    }

    /// Whether it is about a tool of this name, whatever the arguments.
    pub fn names(&self, tool: &str) -> bool {
        self.tool.matches(tool)
    }

    /// Whether it holds for a call. Arguments that cannot be read are what a strict rule means and an allow does not.
    pub fn holds(&self, tool: &str, arguments: &Arguments<'_>) -> bool {
        if !self.names(tool) {
            return false;
        }
        let Some(pattern) = &self.pattern else { return true };
        match (self.action(), arguments.node()) {
            (Action::Allow, Some(node)) => pattern.admits(node),
            (Action::Allow, None) => false,
            (Action::Ask | Action::Deny, Some(node)) => pattern.meets(node),
            (Action::Ask | Action::Deny, None) => true,
        }
    }

    /// Whether it would hold, were it not for how something is written, given that it does not. Says yes in doubt.
    pub fn nearly_holds(&self, tool: &str, folded: &str, arguments: &Arguments<'_>) -> bool {
        let could_differ = !self.twin.is_same || folded != tool;
        let looks_alike = !folded.is_ascii() || (could_differ && self.twin.folded.matches(folded));
        match &self.pattern {
            None => looks_alike,
            Some(_) if !looks_alike && !self.names(tool) => false,
            Some(pattern) => arguments.node().is_none_or(|node| pattern.nearly_meets(node)),
        }
    }

    /// Sorts clauses so that the first one that holds decides: denies, then the most precise, at a tie the ask.
    pub fn sort(list: &mut [Arc<Self>]) {
        list.sort_by_cached_key(|clause| {
            let action = clause.action();
            let spelling = (clause.tool.text(), clause.rule.rule.pattern.clone());
            (action != Action::Deny, Reverse(clause.precision), action == Action::Allow, spelling)
        });
    }
}
