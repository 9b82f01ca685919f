//! Rules that apply to some callers besides the rules for all.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use wharf_policy::{Policy, Rule, RuleAuthority, RuleOrigin, RuleProblem, SourcedRule};
use wharf_spec::ServerName;

/// Sets of rules by name, each compiled together with the rules for all callers: a deny of either always decides.
#[derive(Default)]
pub(super) struct RuleSets(HashMap<Arc<str>, RuleSet>);

struct RuleSet {
    rules: Vec<SourcedRule>,
    policy: Arc<Policy>,
}

/// Denies everything: for callers whose rules are unknown.
static DENY_ALL: LazyLock<Arc<Policy>> = LazyLock::new(|| Arc::new(Policy::compile(deny_all(), &[])));

fn deny_all() -> Vec<SourcedRule> {
    let origin = || RuleOrigin { place: "rules that cannot be read".to_owned(), authority: RuleAuthority::User };
    ["mcp__*", "*"].map(|tool| SourcedRule { rule: Rule::deny(tool), origin: origin() }).to_vec()
}

impl RuleSets {
    /// Returns the rules of a set, together with those for all callers. An unknown set denies everything.
    pub fn policy(&self, name: &str) -> &Arc<Policy> {
        self.0.get(name).map_or(&*DENY_ALL, |set| &set.policy)
    }

    /// Sets the rules of a set. If one of them is unreadable, the set denies everything.
    pub fn insert(
        &mut self,
        name: &str,
        rules: Vec<SourcedRule>,
        common: &[SourcedRule],
        servers: &[ServerName],
    ) -> Result<(), RuleProblem> {
        let own = Policy::compile(rules.clone(), servers);
        let problem = own.problems().iter().find(|problem| problem.is_fatal()).cloned();
        let rules = if problem.is_some() { deny_all() } else { rules };
        let policy = compile(&rules, common, servers);
        self.0.insert(name.into(), RuleSet { rules, policy });
        problem.map_or(Ok(()), Err)
    }

    /// Compiles all sets again, because the other rules or the servers have changed.
    pub fn recompile(&mut self, common: &[SourcedRule], servers: &[ServerName]) {
        for set in self.0.values_mut() {
            set.policy = compile(&set.rules, common, servers);
        }
    }
}

fn compile(rules: &[SourcedRule], common: &[SourcedRule], servers: &[ServerName]) -> Arc<Policy> {
    Arc::new(Policy::compile([common, rules].concat(), servers))
}
