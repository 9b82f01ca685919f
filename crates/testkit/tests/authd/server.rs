//! The protected server: both eras, scopes, streams that end with their tokens.

use std::io::{BufRead as _, Read as _};

use serde_json::Value;
use wharf_testkit::authd::ScopeRequirement;

use crate::client::{ask, log_in, request, send, status_with};
use crate::start;

#[test]
fn both_eras_are_served_to_whoever_has_a_token() {
    let authd = start(|_| {});
    assert_eq!(ask(&authd, "server/discover", &[]).status, 401);
    assert_eq!(status_with(&authd, "server/discover", "made-up"), 401);
    let bearer = format!("Bearer {}", log_in(&authd, "").access);
    let result = |method: &str| ask(&authd, method, &[("Authorization", &bearer)]).json()["result"].clone();
    assert_eq!(result("server/discover")["supportedVersions"][0], "2026-07-28");
    assert_eq!(result("initialize")["protocolVersion"], "2025-11-25");
    assert_eq!(result("tools/list")["tools"][0]["name"], "echo");
    assert_eq!(result("tools/call")["content"][0]["text"], r#"{"word":"hello"}"#);
    assert_eq!(authd.counts().refusals, 2);
}

#[test]
fn an_open_server_asks_nobody() {
    let authd = start(|switches| switches.open = true);
    assert_eq!(ask(&authd, "tools/list", &[]).status, 200);
    assert_eq!(authd.counts().refusals, 0);
}

#[test]
fn the_challenge_names_scope_and_error() {
    let authd = start(|switches| switches.challenge_scope = Some("mcp:basic".to_owned()));
    let challenge =
        |headers: &[(&str, &str)]| ask(&authd, "tools/list", headers).header("www-authenticate").unwrap().to_owned();
    let fresh = challenge(&[]);
    assert!(fresh.starts_with("Bearer ") && fresh.contains(r#"scope="mcp:basic""#) && !fresh.contains("error="));
    assert!(challenge(&[("Authorization", "Bearer made-up")]).contains(r#"error="invalid_token""#));
}

#[test]
fn o16_calls_may_need_more_once_or_for_ever() {
    let authd = start(|_| {});
    authd.require_scope("mcp:write");
    let poor = log_in(&authd, "mcp:basic").access;
    assert_eq!(status_with(&authd, "tools/list", &poor), 200);
    let refusal = ask(&authd, "tools/call", &[("Authorization", &format!("Bearer {poor}"))]);
    assert_eq!(refusal.status, 403);
    let challenge = refusal.header("www-authenticate").unwrap();
    assert!(challenge.contains(r#"error="insufficient_scope", scope="mcp:write""#), "{challenge}");
    let rich = log_in(&authd, "mcp:basic mcp:write").access;
    assert_eq!(status_with(&authd, "tools/call", &rich), 200);
    authd.change_switches(|switches| switches.step_up = ScopeRequirement::Forever);
    assert_eq!(status_with(&authd, "tools/call", &rich), 403);
}

#[test]
fn o15_a_stream_breaks_off_and_its_token_with_it() {
    let authd = start(|switches| switches.break_stream = true);
    let access = log_in(&authd, "").access;
    let broken = ask(&authd, "tools/call", &[("Authorization", &format!("Bearer {access}"))]);
    assert_eq!((broken.status, broken.header("content-type")), (200, Some("text/event-stream")));
    assert!(broken.body.contains("notifications/progress") && !broken.body.ends_with("0\r\n\r\n"));
    assert_eq!(status_with(&authd, "tools/call", &access), 401);
    let access = log_in(&authd, "").access;
    assert_eq!(status_with(&authd, "tools/call", &access), 200, "once is enough");
}

#[test]
fn o15_a_subscription_ends_when_tokens_expire() {
    let authd = start(|_| {});
    let bearer = format!("Bearer {}", log_in(&authd, "").access);
    let headers = [("Authorization", bearer.as_str()), ("Connection", "close")];
    let mut stream = send("POST", &authd.server_url(), &headers, &request("subscriptions/listen"));
    let mut begun = String::new();
    while !begun.contains("acknowledged") {
        assert_ne!(stream.read_line(&mut begun).unwrap(), 0, "{begun}");
    }
    let data = begun.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let told: Value = serde_json::from_str(data).unwrap();
    assert_eq!(told["method"], "notifications/subscriptions/acknowledged");
    authd.expire_access_tokens();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"));
}
