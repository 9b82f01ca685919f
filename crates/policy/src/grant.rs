//! Answers of a person that are remembered.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use wharf_json::Raw;
use wharf_spec::{ServerName, ServerOrigin, ToolId};

use crate::argument::Node;
use crate::{Action, Attempt, Fingerprint, NoRule, Rule};

/// Grants that are kept for one tool; the oldest go first.
const MOST_PER_TOOL: usize = 64;
/// Tools of one server that grants are kept for.
const MOST_TOOLS: usize = 4096;

/// A yes that a person has given: to what, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The tool.
    pub tool: ToolId,
    /// The arguments.
    pub arguments: GrantScope,
    /// How long it holds.
    pub lifetime: Lifetime,
    /// Where its server is defined. The grant holds for no other.
    pub origin: ServerOrigin,
    /// The definition that the person saw. The grant holds for no other.
    pub definition: Fingerprint,
    /// When it ends by itself; an answer to one question should.
    pub until: Option<Instant>,
}

/// Which arguments a grant is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantScope {
    /// Any.
    Any,
    /// Only these, as [`GrantScope::exactly`] writes them.
    Exactly(Raw),
}

/// How long a grant holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// For one call.
    Once,
    /// As long as the program runs.
    Session,
    /// For good: it is to be written down as a rule, see [`Grant::as_rule`].
    Always,
}

impl GrantScope {
    /// These arguments and no others, however their members are ordered and their strings escaped. Arguments that
    /// cannot be read are taken letter by letter.
    pub fn exactly(arguments: &Raw) -> Self {
        let canonical = Node::read(arguments.get()).map(|node| Raw::known(node.canonical()));
        Self::Exactly(canonical.unwrap_or_else(|| arguments.clone()))
    }
}

impl Grant {
    /// The rule that says the same, to be written to the user's file.
    pub fn as_rule(&self, servers: &[ServerName]) -> Result<Rule, NoRule> {
        match self.arguments {
            GrantScope::Any => Rule::naming(&self.tool, Action::Allow, servers)?.of_origin(&self.origin),
            GrantScope::Exactly(_) => Err(NoRule::Arguments),
        }
    }

    fn holds(&self, definition: &Fingerprint, now: Instant) -> bool {
        self.definition == *definition && self.until.is_none_or(|end| now < end)
    }
}

/// The grants of one program's run. Only tools of servers have any.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    servers: HashMap<ServerName, HashMap<Arc<str>, Vec<Grant>>>,
}

impl Grants {
    /// Remembers a grant. A server of which too many tools have grants gets no more: then the person is asked again.
    pub fn add(&mut self, grant: Grant) {
        let tools = self.servers.entry(grant.tool.server.clone()).or_default();
        if tools.len() >= MOST_TOOLS && !tools.contains_key(&grant.tool.tool) {
            return;
        }
        let list = tools.entry(grant.tool.tool.clone()).or_default();
        if list.len() >= MOST_PER_TOOL {
            list.remove(0);
        }
        list.push(grant);
    }

    /// How long the grant that covers an attempt holds, if there is one; the longest, if there are several.
    pub fn covers(&self, attempt: &Attempt<'_>, definition: &Fingerprint, now: Instant) -> Option<Lifetime> {
        Some(self.find(attempt, definition, now)?.1)
    }

    /// The same for a call that is now made: what holds once is used up.
    pub fn spend(&mut self, attempt: &Attempt<'_>, definition: &Fingerprint, now: Instant) -> Option<Lifetime> {
        let (at, lifetime) = self.find(attempt, definition, now)?;
        if lifetime == Lifetime::Once
            && let Some(list) = self.list_mut(attempt)
        {
            list.remove(at);
        }
        Some(lifetime)
    }

    /// Forgets what was granted once for a server: what was started anew is not what the person saw.
    pub fn forget_once(&mut self, server: &ServerName) {
        self.retain(server, |grant| grant.lifetime != Lifetime::Once);
    }

    /// Forgets what holds always: where that is written down, the rules say so from now on.
    pub fn forget_always(&mut self) {
        let tools = self.servers.values_mut().flat_map(HashMap::values_mut);
        tools.for_each(|grants| grants.retain(|grant| grant.lifetime != Lifetime::Always));
    }

    /// Forgets everything that was granted for a server.
    pub fn forget(&mut self, server: &ServerName) {
        self.servers.remove(server);
    }

    fn retain(&mut self, server: &ServerName, keep: impl Fn(&Grant) -> bool) {
        let Some(tools) = self.servers.get_mut(server) else { return };
        tools.values_mut().for_each(|list| list.retain(&keep));
        tools.retain(|_, list| !list.is_empty());
    }

    fn find(&self, attempt: &Attempt<'_>, definition: &Fingerprint, now: Instant) -> Option<(usize, Lifetime)> {
        let list = self.servers.get(attempt.server?)?.get(attempt.tool)?;
        // Written out once, and only if a grant is for certain arguments.
        let exactly = LazyCell::new(|| GrantScope::exactly(attempt.arguments));
        let fits = |grant: &Grant| grant.arguments == GrantScope::Any || grant.arguments == *exactly;
        let holds = |grant: &Grant| grant.origin == *attempt.origin && grant.holds(definition, now);
        let holding = list.iter().enumerate().filter(|(_, grant)| holds(grant) && fits(grant));
        holding.map(|(at, grant)| (at, grant.lifetime)).max_by_key(|(_, lifetime)| match lifetime {
            Lifetime::Once => 0,
            Lifetime::Session => 1,
            Lifetime::Always => 2,
        })
    }

    fn list_mut(&mut self, attempt: &Attempt<'_>) -> Option<&mut Vec<Grant>> {
        self.servers.get_mut(attempt.server?)?.get_mut(attempt.tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SEEN: Fingerprint = Fingerprint([1; 32]);

    fn server() -> ServerName {
        ServerName::new("git").unwrap()
    }

    fn grant(arguments: GrantScope, lifetime: Lifetime) -> Grant {
        let (tool, origin) = (ToolId::new(&server(), "push"), ServerOrigin::User);
        Grant { tool, origin, arguments, lifetime, definition: SEEN, until: None }
    }

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn exact_arguments_are_compared_by_meaning() {
        let (server, now) = (server(), Instant::now());
        for (granted, attempted, expected) in [
            (r#"{"a":1,"b":"/x"}"#, r#"{ "b":"\u002fx", "a":1 }"#, true),
            (r#"{"a":1}"#, r#"{"a":1.0}"#, false),
            (r#"{"a":12345678901234567890123}"#, r#"{"a":12345678901234567890124}"#, false),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false),
            (r#"{"a":1}"#, r#"{"a":1,"a":1}"#, false),
            (r#"{"a":1,"a":2}"#, r#"{"a":1,"a":2}"#, true),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#, false),
            ("{}", "[]", false),
        ] {
            let mut grants = Grants::default();
            grants.add(grant(GrantScope::exactly(&raw(granted)), Lifetime::Session));
            let arguments = raw(attempted);
            let found = grants.covers(&Attempt::mcp(&server, "push", &arguments), &SEEN, now);
            assert_eq!(found.is_some(), expected, "{granted} {attempted}");
        }
    }

    #[test]
    fn a_grant_holds_as_long_as_it_says_and_for_nothing_else() {
        let (server, now, arguments) = (server(), Instant::now(), raw("{}"));
        let attempt = Attempt::mcp(&server, "push", &arguments);
        let mut grants = Grants::default();
        grants.add(grant(GrantScope::Any, Lifetime::Once));
        assert_eq!(grants.covers(&attempt, &Fingerprint([2; 32]), now), None);
        assert_eq!(grants.covers(&Attempt::mcp(&server, "Push", &arguments), &SEEN, now), None);
        assert_eq!(grants.covers(&Attempt { server: None, ..attempt }, &SEEN, now), None);
        assert_eq!(grants.spend(&attempt, &SEEN, now), Some(Lifetime::Once));
        assert_eq!(grants.spend(&attempt, &SEEN, now), None);

        let minutes = |count: u64| now + Duration::from_secs(60 * count);
        grants.add(Grant { until: Some(minutes(5)), ..grant(GrantScope::Any, Lifetime::Once) });
        assert_eq!(grants.covers(&attempt, &SEEN, minutes(4)), Some(Lifetime::Once));
        assert_eq!(grants.covers(&attempt, &SEEN, minutes(5)), None);

        grants.add(grant(GrantScope::Any, Lifetime::Session));
        assert_eq!(grants.spend(&attempt, &SEEN, now), Some(Lifetime::Session));
        grants.forget_once(&server);
        assert_eq!(grants.spend(&attempt, &SEEN, now), Some(Lifetime::Session));
        grants.forget(&server);
        assert_eq!(grants.spend(&attempt, &SEEN, now), None);
    }

    #[test]
    fn only_a_grant_for_any_arguments_is_a_rule() {
        let always = grant(GrantScope::Any, Lifetime::Always);
        let rule = Rule::new("mcp__git__push", Action::Allow);
        assert_eq!(always.as_rule(&[server()]), Ok(rule));
        let exact = grant(GrantScope::exactly(&raw("{}")), Lifetime::Always);
        assert_eq!(exact.as_rule(&[server()]), Err(NoRule::Arguments));
    }
}
