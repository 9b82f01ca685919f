//! `rules` and `surface` of a profile.

use serde_json::{Value, json};
use wharf_testkit::test_home::{TestHome, USER_CONFIG};

use super::client::PipeClient;
use super::home;

/// A home with these rules for everyone and these profiles.
fn home_with(permissions: &Value, profiles: &Value) -> TestHome {
    let (home, _) = home(permissions);
    let mut config: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
    config["profiles"] = profiles.clone();
    home.write(USER_CONFIG, &config.to_string());
    home
}

fn rule(tool: &str, action: &str) -> Value {
    json!({"tool": tool, "action": action})
}

fn client(home: &TestHome, profile: &str) -> PipeClient {
    PipeClient::initialized(home, "project", &["--server", "demo", "--profile", profile])
}

#[test]
fn rules_of_a_profile_apply_to_its_clients_alone() {
    let permissions = json!([rule("mcp__*", "ask"), rule("mcp__demo__add", "deny")]);
    let profiles = json!({
        "ci": {"rules": [rule("mcp__demo__echo", "allow"), rule("mcp__demo__add", "allow")]},
        "closed": {"rules": [rule("mcp__*", "deny")]},
        "plain": {},
    });
    let home = home_with(&permissions, &profiles);
    let (text, sum) = (json!({"text": "ahoy"}), json!({"a": 1, "b": 2}));
    let mut ci = client(&home, "ci");
    assert_eq!(ci.call("demo__echo", &text), "ahoy");
    let denied = ci.call("demo__add", &sum);
    assert!(denied.contains("denied"), "the user's own deny always decides: {denied}");
    let mut closed = client(&home, "closed");
    let denied = closed.call("demo__echo", &text);
    assert!(denied.contains("denied"), "{denied}");
    let mut plain = client(&home, "plain");
    let refused = plain.call("demo__echo", &text);
    assert!(refused.contains("needs permission"), "rules of another profile do not apply: {refused}");
    assert_eq!(ci.call("demo__echo", &text), "ahoy");
}

#[test]
fn rules_that_cannot_be_read_serve_nothing() {
    let profiles = json!({"odd": {"rules": [{"tool": "mcp__*", "action": "maybe"}]}, "odder": {"rules": [7]}});
    let home = home_with(&super::allow_all(), &profiles);
    for profile in ["odd", "odder"] {
        let ran = home.run(["serve", "--profile", profile]);
        assert!(ran.code == Some(2), "{profile}: {ran:?}");
    }
}

#[test]
fn clients_find_and_call_tools_through_two_tools() {
    let permissions = json!([rule("mcp__*", "allow"), rule("mcp__demo__add", "deny")]);
    let profiles = json!({"search": {"surface": "search", "excludeTools": ["demo__slow"]}});
    let home = home_with(&permissions, &profiles);
    let mut all = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    let mut client = client(&home, "search");
    assert_eq!(client.tool_names(), ["call_tool", "find_tools"]);
    for name in all.tool_names().iter().filter(|name| *name != "demo__slow") {
        let found = client.call("find_tools", &json!({ "query": name }));
        let found: Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found[0]["name"], name.as_str(), "an exact name is found first");
        assert!(found[0]["inputSchema"].is_object(), "{found}");
    }
    let found = client.call("find_tools", &json!({"query": "repeat a text", "limit": 3}));
    assert!(found.contains("demo__echo"), "{found}");
    assert!(!client.call("find_tools", &json!({"query": "demo__slow"})).contains(r#""demo__slow""#));
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    assert_eq!(client.call("call_tool", &call("demo__echo", json!({"text": "ahoy"}))), "ahoy");
    let denied = client.call("call_tool", &call("demo__add", json!({"a": 1, "b": 2})));
    assert!(denied.contains("denied") && denied.contains("mcp__demo__add"), "{denied}");
    for hidden in ["demo__slow", "call_tool", "nothing"] {
        let unknown = client.call("call_tool", &call(hidden, json!({})));
        assert!(unknown.contains("unknown tool") && unknown.contains("find_tools"), "{hidden}: {unknown}");
    }
    drop((client, all));
    let audit = home.read("home/.local/state/wharf/audit.jsonl");
    assert!(audit.contains(r#""echo""#) && !audit.contains("call_tool"), "{audit}");
}
