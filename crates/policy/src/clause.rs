//! One reading of a rule, ready to be matched against an attempt.

use std::cmp::Reverse;
use std::sync::Arc;

use wharf_spec::{Glob, ServerOrigin};

use crate::argument::LazyArguments;
use crate::fold::fold;
use crate::pattern::ArgumentPattern;
use crate::scope::RuleScope;
use crate::target::{NameReading, ToolNamePattern};
use crate::{Rule, RuleAction, SourcedRule};

/// One reading of a rule, for a server that is already known to match.
#[derive(Debug)]
pub(crate) struct RuleClause {
    pub rule: Arc<SourcedRule>,
    tool: ToolNamePattern,
    pattern: Option<Arc<ArgumentPattern>>,
    precision: ClausePrecision,
    twin: FoldedPattern,
    scope: RuleScope,
}

/// Precision of a clause, compared field by field. The most precise clause takes precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ClausePrecision {
    /// The clause names exactly one tool.
    exact: bool,
    /// Number of literal characters in the names of server and tool.
    name: usize,
    /// The clause has a pattern for the arguments.
    argued: bool,
    /// Number of literal characters in that pattern.
    arguments: usize,
}

/// Precision of the names of server and tool.
struct NamePrecision {
    /// They name exactly one tool.
    exact: bool,
    /// Number of literal characters.
    literals: usize,
}

/// The tool pattern of a clause without differences of case and width, to detect lookalike names.
#[derive(Debug)]
struct FoldedPattern {
    folded: Glob,
    /// Set if the pattern is already folded. Only a name that folding changes can then be a lookalike.
    is_same: bool,
}

impl RuleClause {
    /// Creates the clause of a rule in one of its readings.
    pub fn new(rule: &Arc<SourcedRule>, reading: &NameReading, pattern: Option<Arc<ArgumentPattern>>) -> Self {
        let name = reading.server.literal_count() + reading.tool.literal_count();
        let scope = RuleScope::new(&rule.rule, Some(reading));
        Self {
            scope,
            ..Self::with_precision(
                rule,
                reading.tool.clone(),
                NamePrecision { exact: reading.is_exact(), literals: name },
                pattern,
            )
        }
    }

    /// Creates the clause of a rule about plain names, or of the rest of such a name after a matched prefix.
    pub fn plain(rule: &Arc<SourcedRule>, rest: &str, pattern: Option<Arc<ArgumentPattern>>) -> Self {
        let tool = ToolNamePattern::new(rest);
        let is_exact = rest == rule.rule.tool && matches!(tool, ToolNamePattern::Exact(_));
        let literals = tool.literal_count();
        Self::with_precision(rule, tool, NamePrecision { exact: is_exact, literals }, pattern)
    }

    /// Creates the clause that replaces an unreadable rule of a project. It asks about every call of a server that is
    /// not the user's own, with the highest precedence after denies. The rule's intended denials are unknown.
    pub fn asking_for_unreadable(rule: &SourcedRule) -> Self {
        let rule = Arc::new(SourcedRule {
            rule: Rule { action: RuleAction::Ask, ..rule.rule.clone() },
            origin: rule.origin.clone(),
        });
        Self {
            scope: RuleScope::NotUser,
            ..Self::with_precision(
                &rule,
                ToolNamePattern::Any,
                NamePrecision { exact: true, literals: usize::MAX },
                None,
            )
        }
    }

    fn with_precision(
        rule: &Arc<SourcedRule>,
        tool: ToolNamePattern,
        NamePrecision { exact, literals: name }: NamePrecision,
        pattern: Option<Arc<ArgumentPattern>>,
    ) -> Self {
        let arguments = pattern.as_ref().map_or(0, |pattern| pattern.literal_count());
        let precision = ClausePrecision { exact, name, argued: pattern.is_some(), arguments };
        let text = tool.to_pattern();
        let folded = fold(&text);
        let twin = FoldedPattern { is_same: folded == text, folded: Glob::new(&folded) };
        Self { rule: rule.clone(), tool, pattern, precision, twin, scope: RuleScope::new(&rule.rule, None) }
    }

    pub fn action(&self) -> RuleAction {
        self.rule.rule.action
    }

    /// Reports whether the clause applies to servers of this origin.
    pub fn applies_to_origin(&self, origin: &ServerOrigin) -> bool {
        self.scope.covers(origin)
    }

    /// Reports whether the clause names exactly one tool.
    pub fn is_exact(&self) -> bool {
        self.precision.exact
    }

    /// Reports whether the clause applies to every tool of its server.
    pub fn names_every_tool(&self) -> bool {
        matches!(self.tool, ToolNamePattern::Any)
    }

    /// Reports whether the clause applies regardless of the arguments.
    pub fn has_no_pattern(&self) -> bool {
        self.pattern.is_none()
    }

    /// Reports whether the clause applies to a tool of this name, regardless of the arguments.
    pub fn matches_tool(&self, tool: &str) -> bool {
        self.tool.matches(tool)
    }

    /// Reports whether the clause matches a call. Unreadable arguments match a deny or ask, but never an allow.
    pub fn matches_call(&self, tool: &str, arguments: &LazyArguments<'_>) -> bool {
        if !self.matches_tool(tool) {
            return false;
        }
        let Some(pattern) = &self.pattern else { return true };
        match (self.action(), arguments.node()) {
            (RuleAction::Allow, Some(node)) => pattern.matches_all(node),
            (RuleAction::Allow, None) => false,
            (RuleAction::Ask | RuleAction::Deny, Some(node)) => pattern.matches_any(node),
            (RuleAction::Ask | RuleAction::Deny, None) => true,
        }
    }

    /// Reports whether a clause that does not match would match a different spelling of the call. Returns true if in
    /// doubt.
    pub fn nearly_matches_call(&self, tool: &str, folded: &str, arguments: &LazyArguments<'_>) -> bool {
        let could_differ = !self.twin.is_same || folded != tool;
        let looks_alike = !folded.is_ascii() || (could_differ && self.twin.folded.matches(folded));
        match &self.pattern {
            None => looks_alike,
            Some(_) if !looks_alike && !self.matches_tool(tool) => false,
            Some(pattern) => arguments.node().is_none_or(|node| pattern.nearly_matches_any(node)),
        }
    }

    /// Sorts clauses so that the first match decides: denies first, then by precision, and an ask before an allow at a
    /// tie.
    pub fn sort(list: &mut [Arc<Self>]) {
        list.sort_by_cached_key(|clause| {
            let action = clause.action();
            let spelling = (clause.tool.to_pattern(), clause.rule.rule.pattern.clone());
            (action != RuleAction::Deny, Reverse(clause.precision), action == RuleAction::Allow, spelling)
        });
    }
}
