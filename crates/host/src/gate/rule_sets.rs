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

#[cfg(test)]
mod tests {
    use wharf_json::RawJson;
    use wharf_policy::{CallAttempt, Verdict};

    use super::*;

    fn sourced(rules: &[Rule]) -> Vec<SourcedRule> {
        let origin = || RuleOrigin { place: "test".to_owned(), authority: RuleAuthority::User };
        rules.iter().map(|rule| SourcedRule { rule: rule.clone(), origin: origin() }).collect()
    }

    fn verdict(sets: &RuleSets, set: &str, tool: &str) -> Verdict {
        let (server, arguments) = (ServerName::new("git").unwrap(), RawJson::empty_object());
        sets.policy(set).decide(&CallAttempt::server_tool(&server, tool, &arguments)).verdict
    }

    #[test]
    fn deny_of_either_decides_and_unknown_sets_deny_everything() {
        let servers = [ServerName::new("git").unwrap()];
        let common = sourced(&[Rule::ask("mcp__*"), Rule::deny("mcp__git__push")]);
        let mut sets = RuleSets::default();
        let own = [Rule::allow("mcp__git__log"), Rule::allow("mcp__git__push"), Rule::deny("mcp__git__reset")];
        sets.insert("ci", sourced(&own), &common, &servers).unwrap();
        for (tool, expected) in
            [("log", Verdict::Allow), ("push", Verdict::Deny), ("reset", Verdict::Deny), ("show", Verdict::Ask)]
        {
            assert_eq!(verdict(&sets, "ci", tool), expected, "{tool}");
        }
        assert_eq!(verdict(&sets, "other", "log"), Verdict::Deny);
        sets.recompile(&sourced(&[Rule::deny("mcp__git__*")]), &servers);
        assert_eq!(verdict(&sets, "ci", "log"), Verdict::Deny, "changed rules for all apply");
    }

    #[test]
    fn unreadable_set_denies_everything() {
        let servers = [ServerName::new("git").unwrap()];
        let mut sets = RuleSets::default();
        let unreadable = Rule { pattern: Some(String::new()), ..Rule::deny("mcp__git__log") };
        let rules = sourced(&[Rule::allow("mcp__*"), unreadable]);
        assert!(sets.insert("ci", rules, &[], &servers).is_err());
        assert_eq!(verdict(&sets, "ci", "show"), Verdict::Deny);
    }
}
