//! Uses of a server that are not calls of its tools, and rules of a project that cannot be read.

use std::path::Path;

use wharf_json::RawJson;
use wharf_policy::{CallAttempt, DecisionReason, Policy, RiskLevel, Verdict};
use wharf_spec::ServerOrigin;

use crate::block::{rule, server};

fn policy(rules: &[&str]) -> Policy {
    Policy::compile(rules.iter().map(|line| rule(line, "config.json:1")).collect(), &[server("fs"), server("git")])
}

/// Decides a read of this URI of `fs`.
fn read(rules: &[&str], origin: &ServerOrigin, uri: &str, risk: RiskLevel) -> Verdict {
    let arguments = RawJson::new_unchecked(serde_json::json!({ "server": "fs", "uri": uri }).to_string());
    let fs = server("fs");
    policy(rules).decide(&CallAttempt::builtin_tool("ReadMcpResource", &arguments, risk).accessing(&fs, origin)).verdict
}

#[test]
fn server_deny_covers_its_resources() {
    use Verdict::{Allow, Ask, Deny};
    for (rules, listed, unlisted) in [
        (&[][..], Allow, Ask),
        (&["deny mcp__fs"], Deny, Deny),
        (&["deny mcp__fs__*"], Deny, Deny),
        (&["deny mcp__*"], Deny, Deny),
        (&["deny mcp__f*"], Deny, Deny),
        (&["deny *"], Deny, Deny),
        (&["deny mcp__git"], Allow, Ask),
        (&["deny mcp__fs__write"], Allow, Ask),
        (&["deny mcp__*__write"], Allow, Ask),
        (&["deny mcp__fs where uri=x:*"], Deny, Deny),
        (&["deny mcp__fs where path=x:*"], Allow, Ask),
        // An allow of a server is about its tools.
        (&["allow mcp__fs", "allow mcp__*"], Allow, Ask),
        (&["ask mcp__fs"], Allow, Ask),
        (&["ask ReadMcpResource"], Ask, Ask),
        (&["allow ReadMcpResource where server=fs"], Allow, Allow),
        (&["allow ReadMcpResource where server=git"], Allow, Ask),
        (&["allow ReadMcpResource where uri=x:*"], Allow, Allow),
        (&["allow ReadMcpResource where server=fs", "deny mcp__fs"], Deny, Deny),
        (&["allow ReadMcpResource", "deny ReadMcpResource where uri=x:*"], Deny, Deny),
        (&["allow SubscribeMcpResource where server=fs"], Allow, Ask),
    ] {
        let found = [RiskLevel::Low, RiskLevel::High].map(|risk| read(rules, ServerOrigin::USER, "x:1", risk));
        assert_eq!(found, [listed, unlisted], "{rules:?}");
    }
    let project = ServerOrigin::File(Path::new("/p/.mcp.json").into());
    for (rules, expected) in [
        (&["allow ReadMcpResource where server=fs"][..], Ask),
        (&["allow ReadMcpResource where server=fs in /p/.mcp.json"], Allow),
        (&["allow ReadMcpResource where server=fs in /q/.mcp.json"], Ask),
        (&["deny mcp__fs"], Deny),
    ] {
        assert_eq!(read(rules, &project, "x:1", RiskLevel::High), expected, "{rules:?}");
    }
}

#[test]
fn only_unconditional_deny_denies_the_server() {
    for (line, expected) in [
        ("deny mcp__fs", true),
        ("deny mcp__fs__*", true),
        ("deny mcp__*", true),
        ("deny *", true),
        ("deny mcp__fs in /p/.mcp.json", false),
        ("deny mcp__fs where uri=x", false),
        ("deny mcp__fs__a*", false),
        ("ask mcp__fs", false),
    ] {
        assert_eq!(policy(&[line]).server_denial(&server("fs"), ServerOrigin::USER).is_some(), expected, "{line}");
    }
    // A server that the rules were not read against is denied as well.
    assert!(policy(&["deny mcp__other"]).server_denial(&server("other"), ServerOrigin::USER).is_some());
}

#[test]
fn unreadable_project_rule_asks_instead_of_failing() {
    use Verdict::{Allow, Ask};
    let (own, project) = (ServerOrigin::User, ServerOrigin::File(Path::new("/p/.mcp.json").into()));
    for line in ["project deny mcp__", "project ask MCP__fs", "project deny fs(x)", "project deny mcp__fs in p.json"] {
        let policy = policy(&[line, "allow mcp__*", "allow mcp__fs__read in /p/.mcp.json"]);
        let problem = &policy.problems()[0];
        assert!(problem.is_unreadable() && !problem.is_fatal(), "{problem}");
        let (fs, arguments) = (server("fs"), RawJson::empty_object());
        let decide = |origin, trust| {
            policy.decide(&CallAttempt { origin, trust, ..CallAttempt::server_tool(&fs, "read", &arguments) })
        };
        assert_eq!((decide(&own, false).verdict, decide(&project, false).verdict), (Allow, Ask), "{line}");
        assert_eq!(decide(&project, true).verdict, Ask, "trust does not settle it: {line}");
        assert!(matches!(decide(&project, false).reason, DecisionReason::Rule(_)), "{line}");
    }
    // The same in a file of the user's keeps a host from starting.
    assert!(policy(&["deny mcp__"]).problems()[0].is_fatal());
}
