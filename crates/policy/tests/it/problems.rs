//! Which rules are reported, and as what.

use crate::block::{rule, server};
use wharf_policy::{Policy, RuleProblemKind};

/// A short word for each kind.
fn word(kind: &RuleProblemKind) -> &'static str {
    match kind {
        RuleProblemKind::BadName(_) => "name",
        RuleProblemKind::BadPattern(_) => "pattern",
        RuleProblemKind::NoServer => "no server",
        RuleProblemKind::Ambiguous => "ambiguous",
        RuleProblemKind::ProjectAllow => "project",
        RuleProblemKind::PlainAllow => "plain",
        RuleProblemKind::Shadowed(_) => "shadowed",
        other => panic!("{other}"),
    }
}

fn check(servers: &str, rules: &[&str], expected: &[(usize, &str)]) {
    let servers: Vec<_> = servers.split(' ').map(server).collect();
    let rules: Vec<_> = rules.iter().map(|line| rule(line, "config.json:1")).collect();
    let policy = Policy::compile(rules.clone(), &servers);
    let found: Vec<_> = policy.problems().iter().map(|problem| (problem.index, word(&problem.kind))).collect();
    assert_eq!(found, expected, "{rules:?}");
}

#[test]
fn ineffective_rules_are_reported() {
    check(
        "git fs",
        &["allow mcp__git__x", "deny mcp__*", "ask Bash", "deny mcp__fs where path=/etc/*"],
        &[(0, "shadowed")],
    );
    check(
        "git",
        &["deny mcp__GIT__x", "ask mcp__nobody", "allow mcp__nobody__x", "deny mcp__git__"],
        &[(0, "no server"), (1, "no server"), (2, "no server"), (3, "no server")],
    );
    check(
        "a a__b",
        &["allow mcp__a__b", "deny mcp__a__b", "allow mcp__a__*", "allow mcp__*"],
        &[(0, "ambiguous"), (2, "ambiguous")],
    );
    check(
        "git",
        &["project allow mcp__git", "project deny mcp__git__x", "project allow Bash"],
        &[(0, "project"), (2, "project")],
    );
    check("git", &["allow *", "allow mcp*", "allow Ba*", "deny *x"], &[(0, "plain"), (1, "plain")]);
}

#[test]
fn unreadable_rules_are_reported() {
    check(
        "git",
        &["deny mcp__git where =x", "ask mcp__git where", "allow mcp__git where a..b=x"],
        &[(0, "pattern"), (1, "pattern"), (1, "shadowed"), (2, "pattern")],
    );
    check(
        "git",
        &["deny ", "deny mcp__", "deny MCP__git", "deny Mcp__git__x", "deny Bash(rm *)"],
        &[(0, "name"), (1, "name"), (2, "name"), (3, "name"), (4, "name")],
    );
}

#[test]
fn shadowed_rules_are_reported() {
    for (first, second, shadowed) in [
        ("deny mcp__git__*", "allow mcp__git__x", true),
        ("deny mcp__git", "ask mcp__git__x where a=b", true),
        ("deny mcp__git__x", "allow mcp__git__x", true),
        ("deny mcp__git__x*", "allow mcp__git__xy*", true),
        ("deny mcp__*__x", "allow mcp__git__x", true),
        ("deny mcp__git__x where a=b", "allow mcp__git__x where a=b", true),
        ("deny *", "allow mcp__git__x", true),
        ("deny *", "allow Bash", true),
        ("deny B*", "ask Bash", true),
        ("ask mcp__git__x", "allow mcp__git__x", true),
        ("project deny mcp__git", "allow mcp__git__x", true),
        ("deny mcp__git__x where a=b", "allow mcp__git__x", false),
        ("deny mcp__git__x where a=b", "allow mcp__git__x where a=c", false),
        ("deny mcp__git__xy*", "allow mcp__git__x*", false),
        ("deny mcp__git__x", "allow mcp__git", false),
        ("deny mcp__git__x", "deny mcp__git__x", false),
        ("ask mcp__git", "allow mcp__git__x", false),
        ("ask mcp__git__x", "allow mcp__git__x where a=b", false),
        ("deny mcp_?git", "allow mcp__git", false),
        ("deny mcp__*", "allow Bash", false),
    ] {
        let expected: &[_] = if shadowed { &[(1, "shadowed")] } else { &[] };
        check("git fs", &[first, second], expected);
        let expected: &[_] = if shadowed { &[(0, "shadowed")] } else { &[] };
        check("git fs", &[second, first], expected);
    }
}

#[test]
fn problem_messages_are_escaped() {
    let hostile = rule("deny mcp__\u{1b}[2Jx", "project\n.json:1");
    let policy = Policy::compile(vec![hostile], &[server("git")]);
    let shown = policy.problems()[0].to_string();
    assert_eq!(shown, "deny `mcp__\\u{1b}[2Jx` (project\\n.json:1): never matches: no configured server has this name");
    assert!(!policy.problems()[0].is_fatal());
}
