//! What holds for every set of rules.

use crate::block::{rule, server};
use proptest::prelude::*;
use wharf_json::RawJson;
use wharf_policy::{AttemptKind, CallAttempt, Policy, RiskLevel, Rule, RuleAction, SourcedRule, Verdict};
use wharf_spec::{ServerName, ToolId};

const SERVERS: [&str; 4] = ["a", "a__b", "A", "b_"];

fn servers() -> Vec<ServerName> {
    SERVERS.map(server).to_vec()
}

/// An attempt that owns its parts.
#[derive(Debug, Clone)]
struct Call {
    server: Option<ServerName>,
    tool: String,
    arguments: RawJson,
    trust: bool,
    risk: RiskLevel,
}

impl Call {
    fn verdict(&self, rules: &[SourcedRule]) -> Verdict {
        let Self { server, tool, arguments, trust, risk } = self;
        let origin = wharf_spec::ServerOrigin::USER;
        let attempt = CallAttempt {
            server: server.as_ref(),
            origin,
            tool,
            arguments,
            trust: *trust,
            risk: *risk,
            kind: AttemptKind::Call,
        };
        Policy::compile(rules.to_vec(), &servers()).decide(&attempt).verdict
    }
}

/// Names over few letters, so that rules and attempts meet.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("b".to_owned()), Just("del".to_owned()), "[abB_]{1,4}", "[aｂ_]{1,3}"]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[/ab]{0,3}".prop_map(|text| format!("\"{text}\"")),
        Just(r#""\u002fa""#.to_owned()),
        Just("100".to_owned()),
        Just("1e2".to_owned()),
        Just("null".to_owned()),
        Just(r#"["/a","b"]"#.to_owned()),
        Just(r#"{"b":"/a"}"#.to_owned()),
    ]
}

fn arguments() -> impl Strategy<Value = RawJson> {
    prop::collection::vec(("[aAb]", value()), 0..3).prop_map(|members| {
        let members: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        RawJson::new_unchecked(format!("{{{}}}", members.join(",")))
    })
}

fn call() -> impl Strategy<Value = Call> {
    let server_name = prop::option::weighted(0.9, prop::sample::select(vec!["a", "a__b", "A", "b_", "none"]));
    let risk = prop_oneof![9 => Just(RiskLevel::High), 1 => Just(RiskLevel::Low)];
    (server_name, name(), arguments(), any::<bool>(), risk).prop_map(|(name, tool, arguments, trust, risk)| Call {
        server: name.map(server),
        tool,
        arguments,
        trust,
        risk,
    })
}

fn target() -> impl Strategy<Value = String> {
    let servers = prop::sample::select(vec!["a", "a__b", "A", "b_", "*", "a*", "?", r"a\_\_b"]);
    prop_oneof![
        6 => (servers.clone(), "[abB_*?]{1,3}").prop_map(|(server, tool)| format!("mcp__{server}__{tool}")),
        1 => servers.prop_map(|server| format!("mcp__{server}")),
        1 => "[abB_*?]{1,3}",
    ]
}

fn a_rule() -> impl Strategy<Value = SourcedRule> {
    let pattern = prop::option::of(prop_oneof!["[/ab*]{1,3}", "[ab](\\.b)?=[/ab*]{0,3}", Just("a=100".to_owned())]);
    let action = prop::sample::select(vec![RuleAction::Allow, RuleAction::Allow, RuleAction::Ask, RuleAction::Deny]);
    (target(), pattern, action, prop::bool::weighted(0.1)).prop_map(|(tool, pattern, action, is_project)| {
        let mut sourced = rule(if is_project { "project ask x" } else { "ask x" }, "config.json:1");
        sourced.rule = Rule { pattern, ..Rule::new(tool, action) };
        sourced
    })
}

fn rules() -> impl Strategy<Value = Vec<SourcedRule>> {
    prop::collection::vec(a_rule(), 0..5)
}

/// A deny that is likely to be about a call.
fn a_deny_of(call: Call) -> impl Strategy<Value = SourcedRule> {
    let tool = match &call.server {
        Some(server) => format!("mcp__{server}__{}", call.tool),
        None => call.tool,
    };
    let shorter = tool.chars().take(tool.chars().count() - 1).chain(['*']).collect();
    let patterns = [None, None, Some("a=/a"), Some("/*a"), Some("a=100"), Some("b.b=/a"), Some("*")];
    let pattern = prop::sample::select(patterns.map(|pattern| pattern.map(str::to_owned)).to_vec());
    (prop::sample::select(vec![tool, shorter]), pattern).prop_map(|(tool, pattern)| {
        let mut sourced = rule("deny x", "config.json:1");
        sourced.rule = Rule { pattern, ..Rule::new(tool, RuleAction::Deny) };
        sourced
    })
}

fn strictness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Ask => 1,
        Verdict::Deny => 2,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rule_order_does_not_matter(rules in rules(), turn in 0..5usize, call in call()) {
        let mut turned: Vec<_> = rules.iter().rev().cloned().collect();
        turned.rotate_left(turn.min(rules.len()));
        prop_assert_eq!(call.verdict(&rules), call.verdict(&turned));
    }

    #[test]
    fn added_deny_or_ask_never_loosens_a_verdict(rules in rules(), mut added in a_rule(), call in call(), denies in any::<bool>()) {
        added.rule.action = if denies { RuleAction::Deny } else { RuleAction::Ask };
        let before = call.verdict(&rules);
        let more = [rules, vec![added]].concat();
        prop_assert!(strictness(call.verdict(&more)) >= strictness(before));
    }

    /// An allow widens nothing but what it would allow if it stood alone.
    #[test]
    fn an_allow_widens_only_its_own_target(rules in rules(), mut added in a_rule(), call in call()) {
        added.rule.action = RuleAction::Allow;
        let untrusted = Call { trust: false, risk: RiskLevel::High, ..call.clone() };
        let is_target = untrusted.verdict(std::slice::from_ref(&added)) == Verdict::Allow;
        let before = call.verdict(&rules);
        let after = call.verdict(&[rules, vec![added]].concat());
        prop_assert!(is_target || strictness(after) >= strictness(before));
    }

    #[test]
    fn a_matching_deny_is_final(rules in rules(), mut added in a_rule(), call in call()) {
        added.rule.action = RuleAction::Deny;
        let is_target = call.verdict(std::slice::from_ref(&added)) == Verdict::Deny;
        let after = call.verdict(&[rules, vec![added]].concat());
        prop_assert!(!is_target || after == Verdict::Deny);
    }

    /// A name or a value that only looks different is never allowed where the other is denied, unless by its own name.
    #[test]
    fn disguised_calls_do_not_escape_a_deny(
        (call, deny) in call().prop_flat_map(|call| (Just(call.clone()), a_deny_of(call))),
        rules in rules(),
        disguise in 0..6usize,
    ) {
        let rules = [rules, vec![deny]].concat();
        let other = disguised(&call, disguise);
        let by_name = |sourced: &SourcedRule| {
            let is_exact = sourced.rule.action == RuleAction::Allow && !sourced.rule.tool.contains(['*', '?']);
            is_exact && other.tool != call.tool && sourced.rule.tool.ends_with(&other.tool)
        };
        let is_denied = call.verdict(&rules) == Verdict::Deny;
        let escapes = other.verdict(&rules) == Verdict::Allow;
        prop_assert!(!is_denied || !escapes || rules.iter().any(by_name), "{:?}", other);
    }

    /// What a person always allows is written as a rule for that one tool.
    #[test]
    fn rule_for_a_tool_allows_no_other(tool in "[a_*?\\\\ü]{1,5}", other in call(), at in 0..SERVERS.len()) {
        let id = ToolId::new(&servers()[at], &*tool);
        let Ok(named) = Rule::for_tool(&id, RuleAction::Allow, &servers()) else { return Ok(()) };
        let mut sourced = rule("allow x", "config.json:1");
        sourced.rule = named;
        let other = Call { trust: false, risk: RiskLevel::High, ..other };
        let same = Call { server: Some(id.server.clone()), tool: tool.clone(), ..other.clone() };
        prop_assert_eq!(same.verdict(std::slice::from_ref(&sourced)), Verdict::Allow);
        let is_same = other.server.as_ref() == Some(&id.server) && other.tool == tool;
        prop_assert_eq!(other.verdict(&[sourced]) == Verdict::Allow, is_same);
    }

    #[test]
    fn arbitrary_rules_and_arguments_never_panic(
        tool in "\\PC{0,20}",
        pattern in prop::option::of("\\PC{0,20}"),
        text in "\\PC{0,40}",
        call in call(),
    ) {
        let mut sourced = rule("deny x", "config.json:1");
        sourced.rule = Rule { pattern, ..Rule::new(format!("mcp__a*{tool}"), RuleAction::Deny) };
        let allow = SourcedRule { rule: Rule { action: RuleAction::Allow, ..sourced.rule.clone() }, ..sourced.clone() };
        let call = Call { tool, arguments: RawJson::new_unchecked(text), ..call };
        call.verdict(&[sourced, allow]);
    }
}

/// The same call in other clothes: what a careless server would take for the same.
fn disguised(call: &Call, disguise: usize) -> Call {
    let text = call.arguments.as_str();
    let wide = |letter: char| if letter.is_ascii_lowercase() { wide(letter) } else { letter };
    let arguments = match disguise {
        0 => text.replace('/', r"\u002f"),
        1 => text.replace("\"a\":", r#""\u0061":"#).replace("100", "1e2").replace("1e2", "100.0"),
        2 => text.replace("\"a\":", "\"A\":").replace("\"/a", "\"/A"),
        3 => format!(r#"{{"x":1,"x":1{}{}"#, if text == "{}" { "" } else { "," }, &text[1..]),
        _ => text.to_owned(),
    };
    let tool = match disguise {
        4 => call.tool.to_uppercase(),
        5 => call.tool.chars().map(wide).collect(),
        _ => call.tool.clone(),
    };
    Call { tool, arguments: RawJson::new_unchecked(arguments), ..call.clone() }
}

/// The full-width twin of a letter, which compatibility normalisation makes the same.
fn wide(letter: char) -> char {
    char::from_u32(u32::from(letter) + 0xfee0).unwrap_or(letter)
}
