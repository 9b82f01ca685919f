//! SIGTERM: calls in progress finish, new ones are refused.

use std::time::Duration;

use serde_json::json;
use wharf_testkit::oracle::{marked_processes, poll_until};
use wharf_testkit::test_home::TestHome;

use super::client::PipeClient;
use super::{HttpGateway, allow_all, home};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway with a call in progress that takes this long, and the id of the call.
fn busy_gateway(home: &TestHome, words: &[&str], seconds: f64) -> (HttpGateway, PipeClient, u64) {
    let mut gateway = HttpGateway::start_with(home, words);
    gateway.line_after("the token is in ");
    let mut client = PipeClient::initialized(home, "project", &["--server", "demo"]);
    assert_eq!(client.call("demo__echo", &json!({"text": "ahoy"})), "ahoy");
    let arguments = json!({"seconds": seconds, "steps": 100});
    let params = json!({"name": "demo__slow", "arguments": arguments, "_meta": {"progressToken": 1}});
    let id = client.send_request("tools/call", &params);
    client.wait_for_notification("notifications/progress");
    (gateway, client, id)
}

#[test]
fn calls_in_progress_finish_and_new_ones_are_refused() {
    let (home, marker) = home(&allow_all());
    let (mut gateway, mut client, slow) = busy_gateway(&home, &[], 3.0);
    gateway.send_term();
    let is_refused = |client: &mut PipeClient| {
        let listed = client.request("tools/list", &json!({}));
        listed["error"]["data"]["reason"] == "draining" && listed["error"]["data"]["retryAfterMs"].is_u64()
    };
    assert!(poll_until(PATIENCE, || is_refused(&mut client)));
    let answered = client.response(slow);
    assert!(answered["result"]["content"].is_array() && answered["result"]["isError"] != true, "{answered}");
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
    let end = client.wait();
    assert!(end.code == Some(3) && end.stderr.contains("has ended"), "{end:?}");
    assert!(poll_until(PATIENCE, || marked_processes(&marker).is_empty()));
}

#[test]
fn calls_are_cancelled_after_the_grace() {
    let (home, marker) = home(&allow_all());
    let (mut gateway, client, _) = busy_gateway(&home, &["--grace", "200ms"], 60.0);
    assert_eq!(gateway.terminate(), Some(0));
    gateway.line_after("did not finish in time");
    assert_eq!(client.wait().code, Some(3));
    assert!(poll_until(PATIENCE, || marked_processes(&marker).is_empty()));
}

#[test]
fn second_signal_ends_at_once() {
    let (home, marker) = home(&allow_all());
    let (mut gateway, mut client, _) = busy_gateway(&home, &[], 60.0);
    gateway.send_term();
    let is_refused = |client: &mut PipeClient| client.request("tools/list", &json!({}))["error"].is_object();
    assert!(poll_until(PATIENCE, || is_refused(&mut client)));
    assert_eq!(gateway.terminate(), Some(130));
    assert!(poll_until(PATIENCE, || marked_processes(&marker).is_empty()));
}
