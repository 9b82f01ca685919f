//! Remembered permissions that the user has granted.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use wharf_json::RawJson;
use wharf_spec::{ServerName, ServerOrigin, ToolId};

use crate::argument::JsonNode;
use crate::{CallAttempt, Fingerprint};

/// Maximum grants per tool. The oldest is dropped first.
const MAX_GRANTS_PER_TOOL: usize = 64;
/// Maximum tools per server with grants.
const MAX_GRANTED_TOOLS: usize = 4096;

/// A permission that the user has granted: its scope and its lifetime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Tool that the grant is for.
    pub tool: ToolId,
    /// Arguments that the grant is for.
    pub arguments: GrantScope,
    /// Lifetime of the grant.
    pub lifetime: GrantLifetime,
    /// Origin of the tool's server. The grant does not apply to any other origin.
    pub origin: ServerOrigin,
    /// Tool definition that the user saw. The grant does not apply to any other definition.
    pub definition: Fingerprint,
    /// Expiry time. An answer to a single question should have one.
    pub until: Option<Instant>,
}

/// Arguments that a grant applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantScope {
    /// Any arguments.
    Any,
    /// Only these arguments, as normalized by [`GrantScope::from_arguments`].
    Exactly(RawJson),
}

/// Lifetime of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantLifetime {
    /// For one call.
    Once,
    /// Until the program exits.
    Session,
    /// Permanent. To be stored as a rule.
    Always,
}

impl GrantScope {
    /// Creates a scope of exactly these arguments. Ignores the order of members and the escaping of strings. Arguments
    /// that cannot be decoded are compared as text.
    pub fn from_arguments(arguments: &RawJson) -> Self {
        let canonical =
            JsonNode::parse(arguments.as_str()).map(|node| RawJson::new_unchecked(node.to_canonical_json()));
        Self::Exactly(canonical.unwrap_or_else(|| arguments.clone()))
    }
}

impl Grant {
    fn is_valid_for(&self, definition: &Fingerprint, now: Instant) -> bool {
        self.definition == *definition && self.until.is_none_or(|end| now < end)
    }
}

/// The grants of one run of the program. Only tools of servers have grants.
#[derive(Debug, Clone, Default)]
pub struct GrantSet {
    servers: HashMap<ServerName, HashMap<Arc<str>, Vec<Grant>>>,
}

impl GrantSet {
    /// Adds a grant. Ignores it if too many tools of the server already have grants. The user is then asked again.
    pub fn add(&mut self, grant: Grant) {
        let tools = self.servers.entry(grant.tool.server.clone()).or_default();
        if tools.len() >= MAX_GRANTED_TOOLS && !tools.contains_key(&grant.tool.tool) {
            return;
        }
        let list = tools.entry(grant.tool.tool.clone()).or_default();
        if list.len() >= MAX_GRANTS_PER_TOOL {
            list.remove(0);
        }
        list.push(grant);
    }

    /// Reports whether there is no grant.
    pub fn is_empty(&self) -> bool {
        self.servers.values().all(|tools| tools.values().all(Vec::is_empty))
    }

    /// Returns the lifetime of the grant that covers a call, the longest if there are several. Uses up a grant for one
    /// call.
    pub fn consume(
        &mut self,
        attempt: &CallAttempt<'_>,
        definition: &Fingerprint,
        now: Instant,
    ) -> Option<GrantLifetime> {
        let (at, lifetime) = self.find(attempt, definition, now)?;
        if lifetime == GrantLifetime::Once
            && let Some(list) = self.list_mut(attempt)
        {
            list.remove(at);
        }
        Some(lifetime)
    }

    /// Forgets the permanent grants. For use once they are stored as rules.
    pub fn forget_permanent(&mut self) {
        let tools = self.servers.values_mut().flat_map(HashMap::values_mut);
        tools.for_each(|grants| grants.retain(|grant| grant.lifetime != GrantLifetime::Always));
    }

    /// Forgets all grants of a server.
    pub fn forget(&mut self, server: &ServerName) {
        self.servers.remove(server);
    }

    fn find(
        &self,
        attempt: &CallAttempt<'_>,
        definition: &Fingerprint,
        now: Instant,
    ) -> Option<(usize, GrantLifetime)> {
        let list = self.servers.get(attempt.server?)?.get(attempt.tool)?;
        // Computed at most once, and only if a grant is limited to certain arguments.
        let exactly = LazyCell::new(|| GrantScope::from_arguments(attempt.arguments));
        let fits = |grant: &Grant| grant.arguments == GrantScope::Any || grant.arguments == *exactly;
        let holds = |grant: &Grant| grant.origin == *attempt.origin && grant.is_valid_for(definition, now);
        let holding = list.iter().enumerate().filter(|(_, grant)| holds(grant) && fits(grant));
        holding.map(|(at, grant)| (at, grant.lifetime)).max_by_key(|(_, lifetime)| match lifetime {
            GrantLifetime::Once => 0,
            GrantLifetime::Session => 1,
            GrantLifetime::Always => 2,
        })
    }

    fn list_mut(&mut self, attempt: &CallAttempt<'_>) -> Option<&mut Vec<Grant>> {
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

    fn grant(arguments: GrantScope, lifetime: GrantLifetime) -> Grant {
        let (tool, origin) = (ToolId::new(&server(), "push"), ServerOrigin::User);
        Grant { tool, origin, arguments, lifetime, definition: SEEN, until: None }
    }

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn exact_arguments_match_regardless_of_formatting() {
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
            let mut grants = GrantSet::default();
            grants.add(grant(GrantScope::from_arguments(&raw(granted)), GrantLifetime::Session));
            let arguments = raw(attempted);
            let found = grants.consume(&CallAttempt::server_tool(&server, "push", &arguments), &SEEN, now);
            assert_eq!(found.is_some(), expected, "{granted} {attempted}");
        }
    }

    #[test]
    fn grant_holds_for_its_tool_and_lifetime_only() {
        let (server, now, arguments) = (server(), Instant::now(), raw("{}"));
        let attempt = CallAttempt::server_tool(&server, "push", &arguments);
        let mut grants = GrantSet::default();
        grants.add(grant(GrantScope::Any, GrantLifetime::Once));
        assert_eq!(grants.consume(&attempt, &Fingerprint([2; 32]), now), None);
        assert_eq!(grants.consume(&CallAttempt::server_tool(&server, "Push", &arguments), &SEEN, now), None);
        assert_eq!(grants.consume(&CallAttempt { server: None, ..attempt }, &SEEN, now), None);
        assert_eq!(grants.consume(&attempt, &SEEN, now), Some(GrantLifetime::Once));
        assert_eq!(grants.consume(&attempt, &SEEN, now), None);

        let minutes = |count: u64| now + Duration::from_secs(60 * count);
        grants.add(Grant { until: Some(minutes(5)), ..grant(GrantScope::Any, GrantLifetime::Once) });
        assert_eq!(grants.consume(&attempt, &SEEN, minutes(5)), None);
        assert_eq!(grants.consume(&attempt, &SEEN, minutes(4)), Some(GrantLifetime::Once));

        grants.add(grant(GrantScope::Any, GrantLifetime::Session));
        assert_eq!(grants.consume(&attempt, &SEEN, now), Some(GrantLifetime::Session));
        grants.forget(&server);
        assert_eq!(grants.consume(&attempt, &SEEN, now), None);
    }
}
