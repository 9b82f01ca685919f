//! Rules, grants and pins hold for a server as it is defined in one place.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use wharf_json::RawJson;
use wharf_policy::{
    CallAttempt, CallDecision, DecisionReason, Fingerprint, Grant, GrantLifetime, GrantScope, GrantSet,
    PermissionEvaluator, PinSet, Policy, Rule, RuleAction, RuleProblemKind, Verdict,
};
use wharf_spec::{ServerOrigin, ToolId};

use crate::block::{rule, server};

const DEFINITION: Fingerprint = Fingerprint([1; 32]);
const HERE: &str = "/here/.mcp.json";

fn file(path: &str) -> ServerOrigin {
    ServerOrigin::File(Arc::from(Path::new(path)))
}

fn policy(rules: &[&str]) -> Policy {
    let rules = rules.iter().map(|line| rule(line, "config.json:1")).collect();
    Policy::compile(rules, &[server("docs"), server("git")])
}

/// Decides a call of `docs / search` by a server of this origin.
fn verdict(rules: &[&str], origin: &ServerOrigin, trust: bool) -> Verdict {
    let (docs, arguments) = (server("docs"), RawJson::empty_object());
    policy(rules)
        .decide(&CallAttempt { origin, trust, ..CallAttempt::server_tool(&docs, "search", &arguments) })
        .verdict
}

#[test]
fn allow_naming_a_server_covers_the_users_own_only() {
    use Verdict::{Allow, Ask, Deny};
    let (own, here, there) = (ServerOrigin::User, file(HERE), file("/there/.mcp.json"));
    for (rules, expected) in [
        (&["allow mcp__docs__search"][..], [Allow, Ask, Ask]),
        (&["allow mcp__docs"], [Allow, Ask, Ask]),
        (&["allow mcp__d*__search"], [Allow, Ask, Ask]),
        (&["allow mcp__*"], [Allow, Allow, Allow]),
        (&["allow mcp__*__search"], [Allow, Allow, Allow]),
        (&["allow mcp__docs__search in /here/.mcp.json"], [Ask, Allow, Ask]),
        (&["deny mcp__docs"], [Deny, Deny, Deny]),
        (&["allow mcp__*", "deny mcp__docs in /here/.mcp.json"], [Allow, Deny, Allow]),
        (&["allow mcp__*", "ask mcp__docs__search"], [Ask, Ask, Ask]),
        (&["allow mcp__*", "ask mcp__docs__search in /here/.mcp.json"], [Allow, Ask, Allow]),
        // Another case of what is denied there is asked about there.
        (&["allow mcp__*", "deny mcp__docs__Search in /here/.mcp.json"], [Allow, Ask, Allow]),
        (&["project allow mcp__docs__search in /here/.mcp.json"], [Ask, Ask, Ask]),
    ] {
        let found = [&own, &here, &there].map(|origin| verdict(rules, origin, false));
        assert_eq!(found, expected, "{rules:?}");
    }
    assert_eq!(verdict(&[], &here, true), Allow, "trust is part of the entry, which the user approves");
}

#[test]
fn reason_names_the_rule_of_another_origin() {
    let (docs, arguments, origin) = (server("docs"), RawJson::empty_object(), file(HERE));
    let attempt = CallAttempt { origin: &origin, ..CallAttempt::server_tool(&docs, "search", &arguments) };
    let decided = policy(&["allow mcp__docs__search"]).decide(&attempt);
    assert!(matches!(&decided.reason, DecisionReason::Elsewhere(rule) if rule.rule.tool == "mcp__docs__search"));
    let shown = decided.reason.to_string();
    assert!(shown.contains("allow `mcp__docs__search` (config.json:1)"), "{shown}");
}

#[test]
fn grants_and_pins_hold_for_their_origin_only() {
    let (docs, arguments) = (server("docs"), RawJson::empty_object());
    let (own, here) = (ServerOrigin::User, file(HERE));
    for (given, attempted, granted, known) in
        [(&own, &own, true, true), (&here, &here, true, true), (&own, &here, false, false), (&here, &own, false, false)]
    {
        let (mut grants, mut pins) = (GrantSet::default(), PinSet::default());
        let tool = ToolId::new(&docs, "search");
        pins.approve(given.clone(), tool.clone(), DEFINITION, "{}").unwrap();
        let (origin, arguments_of, lifetime) = (given.clone(), GrantScope::Any, GrantLifetime::Session);
        grants.add(Grant { tool, origin, arguments: arguments_of, lifetime, definition: DEFINITION, until: None });
        let policy = policy(&[]);
        let attempt = CallAttempt { origin: attempted, ..CallAttempt::server_tool(&docs, "search", &arguments) };
        let mut judge = PermissionEvaluator { policy: &policy, grants: &mut grants, pins: &pins, now: Instant::now() };
        let judgement = judge.evaluate(&attempt, Some(&DEFINITION));
        assert_eq!(matches!(judgement, CallDecision::Allow { .. }), granted, "{given:?} {attempted:?}: {judgement:?}");
        let trusted = judge.evaluate(&CallAttempt { trust: true, ..attempt }, Some(&DEFINITION));
        let first_seen = matches!(trusted, CallDecision::Allow { first_seen: true, .. });
        assert_eq!(first_seen, !known, "{given:?} {attempted:?}: {trusted:?}");
    }
}

#[test]
fn always_rule_names_the_origin_of_its_server() {
    let docs = server("docs");
    let text = |origin: ServerOrigin| {
        let (tool, servers) = (ToolId::new(&docs, "search"), std::slice::from_ref(&docs));
        let rule = Rule::for_tool(&tool, RuleAction::Allow, servers).and_then(|rule| rule.with_origin(&origin));
        serde_json::to_string(&rule.unwrap()).unwrap()
    };
    assert_eq!(text(ServerOrigin::User), r#"{"tool":"mcp__docs__search","action":"allow"}"#);
    let expected = r#"{"tool":"mcp__docs__search","action":"allow","definedIn":"/here/.mcp.json"}"#;
    assert_eq!(text(file(HERE)), expected);
}

#[test]
fn rule_for_a_file_is_reported_only_if_path_is_invalid() {
    for (line, expected) in [
        ("allow mcp__elsewhere__x in /there/.mcp.json", None),
        ("deny mcp__elsewhere in /there/.mcp.json", None),
        ("allow mcp__elsewhere__x", Some(RuleProblemKind::NoServer)),
        (
            "allow mcp__docs__search in there/.mcp.json",
            Some(RuleProblemKind::BadFile("`definedIn` is not an absolute path")),
        ),
    ] {
        let policy = policy(&[line]);
        assert_eq!(policy.problems().first().map(|problem| problem.kind.clone()), expected, "{line}");
    }
    // A deny for one file does not stand before an allow for another.
    assert_eq!(policy(&["deny mcp__docs in /here/.mcp.json", "allow mcp__docs"]).problems(), []);
}

#[test]
fn allow_rules_of_a_server_match_its_origin() {
    let rules =
        ["allow mcp__docs__search", "allow mcp__docs in /here/.mcp.json", "allow mcp__*__read", "deny mcp__git"];
    let policy = policy(&rules);
    let allows = |origin: &ServerOrigin| {
        policy.allow_rules_for(&server("docs"), origin).iter().map(|rule| rule.rule.tool.clone()).collect::<Vec<_>>()
    };
    assert_eq!(allows(&ServerOrigin::User), ["mcp__docs__search", "mcp__*__read"]);
    assert_eq!(allows(&file(HERE)), ["mcp__docs", "mcp__*__read"]);
    assert_eq!(allows(&file("/there/.mcp.json")), ["mcp__*__read"]);
}
