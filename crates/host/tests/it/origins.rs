//! Permissions hold for a server as it is defined in one place, and not for another of its name.

use std::path::Path;
use std::sync::{Arc, Mutex};

use wharf::policy::{Rule, RuleAction, RuleAuthority, RuleOrigin, SourcedRule};
use wharf::spec::{ServerOrigin, ServerSettings};
use wharf::tools::RefusalReason;
use wharf::{CallOptions, Host, HostBuilder, HostError, PermissionAnswer};

use crate::fixture::{none, server, settings, tool};
use crate::permission::{At, Person, Shifty, rule};

const HERE: &str = "/here/.mcp.json";

fn defined_in(file: &str) -> ServerSettings {
    let mut settings = settings();
    settings.origin = ServerOrigin::File(Path::new(file).into());
    settings
}

fn host_with(shifty: &Shifty, settings: ServerSettings, state: &Path) -> HostBuilder {
    Host::builder().local_with(server("math"), settings, shifty.factory()).state_dir(state.join("state"))
}

fn sourced(rule: Rule) -> SourcedRule {
    SourcedRule { rule, origin: RuleOrigin { place: "config.json:1".to_owned(), authority: RuleAuthority::User } }
}

/// Calls the tool; the reason of a refusal, if it is refused.
async fn call(host: &Host) -> Result<(), RefusalReason> {
    match host.call(&tool("math", "add"), &none(), CallOptions::default()).await {
        Ok(_) => Ok(()),
        Err(HostError::Denied(refusal)) => Err(refusal.reason),
        Err(other) => panic!("{other}"),
    }
}

/// Calls the tool once in a host with these rules.
async fn call_once(
    shifty: &Shifty,
    settings: ServerSettings,
    state: &Path,
    rules: &[SourcedRule],
) -> Result<(), RefusalReason> {
    let host = host_with(shifty, settings, state).rules(rules.to_vec()).start().await.unwrap();
    let called = call(&host).await;
    host.close().await;
    called
}

/// Answers "always" in one host, and returns the rule that is written.
async fn always(shifty: &Shifty, settings: ServerSettings, state: &Path) -> Rule {
    let person = Person::saying(&[PermissionAnswer::Always]);
    let written = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&written);
    let host = host_with(shifty, settings, state).asker(Arc::new(At(Arc::clone(&person))));
    let host = host.on_rule(Arc::new(move |rule| sink.lock().unwrap().push(rule.clone())));
    let host = host.start().await.unwrap();
    for _ in 0..2 {
        call(&host).await.unwrap();
    }
    assert_eq!(person.asked(), 1);
    host.close().await;
    let rule = written.lock().unwrap().pop();
    rule.unwrap()
}

#[tokio::test]
async fn project_server_inherits_no_user_rule() {
    let (shifty, place) = (Shifty::new(), tempfile::tempdir().unwrap());
    let allow = [rule("mcp__math__add", RuleAction::Allow)];
    call_once(&shifty, settings(), place.path(), &allow).await.unwrap();
    let refused = call_once(&shifty, defined_in(HERE), place.path(), &allow).await.unwrap_err();
    let RefusalReason::NobodyToAsk { rule: named } = refused else { panic!("{refused:?}") };
    assert_eq!(named, r#"{"tool":"mcp__math__add","action":"allow","definedIn":"/here/.mcp.json"}"#);
    // The rule that the refusal names is the one that helps, and helps nowhere else.
    let named = [sourced(serde_json::from_str(&named).unwrap())];
    call_once(&shifty, defined_in(HERE), place.path(), &named).await.unwrap();
    for elsewhere in [settings(), defined_in("/there/.mcp.json")] {
        let refused = call_once(&shifty, elsewhere, place.path(), &named).await;
        assert!(matches!(refused, Err(RefusalReason::NobodyToAsk { .. })), "{refused:?}");
    }
    // What names no server reaches all of them, and a deny reaches every server of its name.
    call_once(&shifty, defined_in(HERE), place.path(), &[rule("mcp__*", RuleAction::Allow)]).await.unwrap();
    let denied = [rule("mcp__*", RuleAction::Allow), rule("mcp__math", RuleAction::Deny)];
    let refused = call_once(&shifty, defined_in(HERE), place.path(), &denied).await;
    assert!(matches!(refused, Err(RefusalReason::Denied { .. })), "{refused:?}");
    assert_eq!(shifty.calls(), 3);
}

#[tokio::test]
async fn always_answer_holds_for_one_project_only() {
    let (shifty, place) = (Shifty::new(), tempfile::tempdir().unwrap());
    let here = always(&shifty, defined_in(HERE), place.path()).await;
    assert_eq!((here.tool.as_str(), here.defined_in.as_deref()), ("mcp__math__add", Some(HERE)));
    let own = always(&shifty, settings(), place.path()).await;
    assert_eq!((own.tool.as_str(), own.defined_in), ("mcp__math__add", None));
    let there = call_once(&shifty, defined_in("/there/.mcp.json"), place.path(), &[sourced(here)]).await;
    assert!(matches!(there, Err(RefusalReason::NobodyToAsk { .. })), "{there:?}");
}

#[tokio::test]
async fn definition_approval_is_per_origin() {
    let (shifty, place) = (Shifty::new(), tempfile::tempdir().unwrap());
    let allow = [rule("mcp__*", RuleAction::Allow)];
    call_once(&shifty, settings(), place.path(), &allow).await.unwrap();
    // A project's server describes its tool in its own words: that is no change of the user's.
    shifty.describe("Adds two numbers of the project.");
    call_once(&shifty, defined_in(HERE), place.path(), &allow).await.unwrap();
    // And what was approved there is not approved for the user's own.
    assert_eq!(call_once(&shifty, settings(), place.path(), &allow).await, Err(RefusalReason::DefinitionChanged));
    assert_eq!(shifty.calls(), 2);
}
