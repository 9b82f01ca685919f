//! `sharing` and `maxInstances`: which clients use the same process of a server.

use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::oracle::{marked_processes, poll_until};
use wharf_testkit::test_home::{TestHome, USER_CONFIG};

use super::client::PipeClient;
use super::profiles::{initialize, post};
use super::{HttpGateway, allow_all, home};

const PATIENCE: Duration = Duration::from_secs(20);

/// A home whose demo server has these settings besides.
fn home_with(settings: &Value) -> (TestHome, String) {
    let (home, marker) = home(&allow_all());
    let mut config: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
    for (key, value) in settings.as_object().unwrap() {
        config["mcpServers"]["demo"][key] = value.clone();
    }
    home.write(USER_CONFIG, &config.to_string());
    (home, marker)
}

#[test]
fn each_session_has_a_process_of_its_own_until_it_ends() {
    let (home, marker) = home_with(&json!({"sharing": "session"}));
    let start = || PipeClient::initialized(&home, "project", &["--server", "demo"]);
    let (mut ada, mut bob) = (start(), start());
    for client in [&mut ada, &mut bob] {
        for _ in 0..2 {
            assert_eq!(client.call("demo__echo", &json!({"text": "ahoy"})), "ahoy");
        }
    }
    assert_eq!(marked_processes(&marker).len(), 3, "one for the lists, one for each session");
    let status = home.run_ok(&["serve", "--status", "--json"]).json();
    assert_eq!(status["projects"][0]["instances"], json!({"demo": 2}), "{status}");
    let text = home.run_ok(&["serve", "--status"]).stdout;
    assert!(text.contains("further instances: demo 2"), "{text}");
    assert_eq!(ada.finish().code, Some(0));
    assert!(poll_until(PATIENCE, || marked_processes(&marker).len() == 2), "its process ends with the session");
    assert_eq!(bob.call("demo__echo", &json!({"text": "still"})), "still");
}

#[test]
fn further_sessions_learn_which_limit_to_raise() {
    let (home, marker) = home_with(&json!({"sharing": "session", "maxInstances": 1}));
    let start = || PipeClient::initialized(&home, "project", &["--server", "demo"]);
    let (mut ada, mut bob) = (start(), start());
    assert_eq!(ada.call("demo__echo", &json!({"text": "ahoy"})), "ahoy");
    let refused = bob.call("demo__echo", &json!({"text": "ahoy"}));
    assert!(refused.contains("all 1 instances") && refused.contains("`maxInstances`"), "{refused}");
    assert_eq!(marked_processes(&marker).len(), 2);
    assert_eq!(ada.finish().code, Some(0));
    assert_eq!(bob.call("demo__echo", &json!({"text": "now"})), "now", "the ended session has made room");
}

#[test]
fn each_key_has_a_process_for_its_sessions() {
    let (home, marker) = home_with(&json!({"sharing": "user"}));
    let keys: Vec<String> =
        ["ci", "other"].map(|name| home.run_ok(&["key", "add", name]).stdout.trim().to_owned()).to_vec();
    let mut gateway = HttpGateway::start_with(&home, &["--server", "demo"]);
    let url = gateway.line_after("listening on ");
    let params = json!({"name": "demo__echo", "arguments": {"text": "ahoy"}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    for (key, processes) in [(&keys[0], 2), (&keys[0], 2), (&keys[1], 3)] {
        let session = post(&url, key, None, &initialize()).session.unwrap();
        let called = post(&url, key, Some(&session), &call);
        assert!(called.status == 200 && called.body.contains("ahoy"), "{}", called.body);
        assert_eq!(marked_processes(&marker).len(), processes);
    }
}

#[test]
fn misspelt_sharing_is_reported() {
    let (home, _) = home_with(&json!({"sharing": "sesion"}));
    let checked = home.run(["validate"]);
    assert!(checked.code != Some(0) && (checked.stdout + &checked.stderr).contains("session"));
}
