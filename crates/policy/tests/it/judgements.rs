//! Rules, grants and pins together: what goes before what.

use std::time::Instant;

use crate::block::{rule, server};
use wharf_json::RawJson;
use wharf_policy::{
    CallAttempt, CallDecision, DecisionReason, Fingerprint, Grant, GrantLifetime, GrantScope, GrantSet,
    PermissionEvaluator, PinSet, Policy, RiskLevel,
};
use wharf_spec::{ServerOrigin, ToolId};

const KNOWN: Fingerprint = Fingerprint([1; 32]);
const OTHER: Fingerprint = Fingerprint([2; 32]);

/// What is remembered of the tool before it is called.
#[derive(Debug, Clone, Copy)]
enum Pinned {
    Nothing,
    Known,
    Other,
}

/// Judges one call of `git / push` and says the outcome in a word or two.
fn judged(rules: &[&str], trust: bool, granted: Option<(GrantLifetime, Fingerprint)>, pinned: Pinned) -> &'static str {
    let (git, arguments) = (server("git"), RawJson::empty_object());
    let policy =
        Policy::compile(rules.iter().map(|line| rule(line, "config.json:1")).collect(), std::slice::from_ref(&git));
    let tool = ToolId::new(&git, "push");
    let (mut grants, mut pins) = (GrantSet::default(), PinSet::default());
    if let Some((lifetime, definition)) = granted {
        let (tool, origin) = (tool.clone(), ServerOrigin::User);
        grants.add(Grant { tool, origin, arguments: GrantScope::Any, lifetime, definition, until: None });
    }
    match pinned {
        Pinned::Nothing => {}
        Pinned::Known => pins.approve(ServerOrigin::User, tool, KNOWN, "{}").expect("there is room"),
        Pinned::Other => pins.approve(ServerOrigin::User, tool, OTHER, "{}").expect("there is room"),
    }
    let attempt = CallAttempt { trust, ..CallAttempt::server_tool(&git, "push", &arguments) };
    let mut judge = PermissionEvaluator { policy: &policy, grants: &mut grants, pins: &pins, now: Instant::now() };
    match judge.evaluate(&attempt, Some(&KNOWN)) {
        CallDecision::Allow { why: DecisionReason::Grant(_), .. } => "allow by grant",
        CallDecision::Allow { first_seen: true, .. } => "allow, first seen",
        CallDecision::Allow { .. } => "allow",
        CallDecision::Ask { changed: Some(_), .. } => "ask, changed",
        CallDecision::Ask { .. } => "ask",
        CallDecision::Deny { .. } => "deny",
    }
}

#[test]
fn rules_grants_trust_and_pins_apply_in_order() {
    use GrantLifetime::{Always, Once, Session};
    use Pinned::{Known, Nothing, Other};
    let (allow, ask, deny) = (&["allow mcp__git__push"][..], &["ask mcp__git__push"][..], &["deny mcp__git"][..]);
    for (rules, trust, granted, pinned, expected) in [
        (&[][..], false, None, Nothing, "ask"),
        (&[], false, None, Known, "ask"),
        (&[], false, None, Other, "ask, changed"),
        (&[], true, None, Nothing, "allow, first seen"),
        (&[], true, None, Known, "allow"),
        (&[], true, None, Other, "ask, changed"),
        (&[], false, Some((Session, KNOWN)), Known, "allow by grant"),
        (&[], false, Some((Once, KNOWN)), Known, "allow by grant"),
        (&[], false, Some((Always, KNOWN)), Known, "allow by grant"),
        (&[], false, Some((Session, KNOWN)), Nothing, "allow by grant"),
        (&[], false, Some((Session, OTHER)), Known, "ask"),
        (&[], false, Some((Session, OTHER)), Other, "ask, changed"),
        (&[], false, Some((Always, KNOWN)), Other, "ask, changed"),
        (allow, false, None, Nothing, "allow, first seen"),
        (allow, false, None, Known, "allow"),
        (allow, false, None, Other, "ask, changed"),
        (allow, true, Some((Always, KNOWN)), Other, "ask, changed"),
        (ask, false, None, Known, "ask"),
        (ask, true, None, Known, "ask"),
        (ask, true, None, Other, "ask, changed"),
        (ask, true, Some((Session, KNOWN)), Known, "allow by grant"),
        (ask, false, Some((Once, KNOWN)), Known, "allow by grant"),
        (ask, false, Some((Session, KNOWN)), Other, "ask, changed"),
        (deny, true, None, Nothing, "deny"),
        (deny, true, Some((Always, KNOWN)), Known, "deny"),
        (deny, false, Some((Once, KNOWN)), Other, "deny"),
    ] {
        let found = judged(rules, trust, granted, pinned);
        assert_eq!(found, expected, "{rules:?}, trust {trust}, {granted:?}, {pinned:?}");
    }
}

/// T13: a definition that changes is asked about, and one that changes back is not.
#[test]
fn reverted_definition_is_known() {
    let (git, arguments) = (server("git"), RawJson::empty_object());
    let policy = Policy::compile(vec![rule("allow mcp__git", "config.json:1")], std::slice::from_ref(&git));
    let (mut grants, mut pins) = (GrantSet::default(), PinSet::default());
    let attempt = CallAttempt::server_tool(&git, "push", &arguments);
    let tool = ToolId::new(&git, "push");
    let mut judge = |pins: &PinSet, definition| {
        PermissionEvaluator { policy: &policy, grants: &mut grants, pins, now: Instant::now() }
            .evaluate(&attempt, definition)
    };
    assert!(matches!(judge(&pins, Some(&KNOWN)), CallDecision::Allow { first_seen: true, .. }));
    pins.approve(ServerOrigin::User, tool.clone(), KNOWN, "before").unwrap();
    let CallDecision::Ask { why: DecisionReason::Rule(_), changed: Some(approved) } = judge(&pins, Some(&OTHER)) else {
        panic!("it has changed")
    };
    assert_eq!(&*approved, "before");
    assert!(matches!(judge(&pins, Some(&KNOWN)), CallDecision::Allow { first_seen: false, .. }));
    pins.approve(ServerOrigin::User, tool, OTHER, "after").unwrap();
    assert!(matches!(judge(&pins, Some(&OTHER)), CallDecision::Allow { first_seen: false, .. }));
    assert!(matches!(judge(&pins, Some(&KNOWN)), CallDecision::Allow { first_seen: false, .. }));
    assert!(matches!(judge(&pins, None), CallDecision::Ask { why: DecisionReason::Undescribed, .. }));
}

/// T20: an answer to one question is good for the one call, and only for it.
#[test]
fn single_use_grant_is_consumed_when_it_decides() {
    let (git, arguments, other) = (server("git"), RawJson::empty_object(), RawJson::parse(r#"{"a":1}"#).unwrap());
    let (policy, pins, now) =
        (Policy::compile(Vec::new(), std::slice::from_ref(&git)), PinSet::default(), Instant::now());
    let mut grants = GrantSet::default();
    let tool = ToolId::new(&git, "push");
    let exactly = GrantScope::from_arguments(&arguments);
    let (origin, lifetime) = (ServerOrigin::User, GrantLifetime::Once);
    grants.add(Grant { tool, origin, arguments: exactly, lifetime, definition: KNOWN, until: None });
    let mut judge = PermissionEvaluator { policy: &policy, grants: &mut grants, pins: &pins, now };
    let granted = CallDecision::Allow { why: DecisionReason::Grant(GrantLifetime::Once), first_seen: true };
    let asked = CallDecision::Ask { why: DecisionReason::Default, changed: None };
    // Trusted, it is not needed; with other arguments, it does not fit; then it is spent.
    let trusted = CallAttempt { trust: true, ..CallAttempt::server_tool(&git, "push", &arguments) };
    assert!(matches!(judge.evaluate(&trusted, Some(&KNOWN)), CallDecision::Allow { why: DecisionReason::Trust, .. }));
    assert_eq!(judge.evaluate(&CallAttempt::server_tool(&git, "push", &other), Some(&KNOWN)), asked);
    assert_eq!(judge.evaluate(&CallAttempt::server_tool(&git, "push", &arguments), Some(&KNOWN)), granted);
    assert_eq!(judge.evaluate(&CallAttempt::server_tool(&git, "push", &arguments), Some(&KNOWN)), asked);
    let plain = CallAttempt::builtin_tool("ListMcpResources", &arguments, RiskLevel::Low);
    assert_eq!(judge.evaluate(&plain, None), CallDecision::Allow { why: DecisionReason::LowRisk, first_seen: false });
}
