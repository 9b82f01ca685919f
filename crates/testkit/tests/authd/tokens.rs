//! The token endpoint: lifetimes, refreshing and what goes wrong with it, giving tokens back.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wharf_testkit::authd::{RefreshRotation, RevocationBehaviour, RotationStage, TokenBehaviour};

use crate::client::{form, log_in, receive, refresh, send, status_with, written};
use crate::start;

#[test]
fn o17_expires_in_is_said_word_for_word() {
    for said in [json!(3600), json!(0), json!(-1), json!("300"), json!(1e300), Value::Null] {
        let authd = start(|switches| switches.expires_in = said.clone());
        let login = log_in(&authd, "");
        let tokens = refresh(&authd, &login.client, &login.refresh).unwrap().json();
        assert_eq!(tokens.get("expires_in").cloned().unwrap_or_default(), said);
    }
}

#[test]
fn o03_refreshing_fails_as_it_is_told_and_changes_nothing() {
    let cases = [
        (TokenBehaviour::InvalidGrant, 400, "invalid_grant"),
        (TokenBehaviour::OtherError, 400, "invalid_request"),
        (TokenBehaviour::Unauthorized, 401, "invalid_client"),
        (TokenBehaviour::TooMany, 429, "slow_down"),
        (TokenBehaviour::ServerError, 500, "server_error"),
    ];
    let authd = start(|_| {});
    let login = log_in(&authd, "");
    for (fault, status, code) in cases {
        authd.change_switches(|switches| switches.refresh = fault);
        let reply = refresh(&authd, &login.client, &login.refresh).unwrap();
        assert_eq!((reply.status, reply.error().as_str()), (status, code));
    }
    authd.change_switches(|switches| switches.refresh = TokenBehaviour::Garbage);
    let garbage = refresh(&authd, &login.client, &login.refresh).unwrap();
    assert!(garbage.status == 200 && serde_json::from_str::<Value>(&garbage.body).is_err());
    authd.change_switches(|switches| switches.refresh = TokenBehaviour::Good);
    assert_eq!(refresh(&authd, &login.client, &login.refresh).unwrap().status, 200);
    let counts = authd.counts();
    assert_eq!((counts.refreshes, counts.rotations, counts.reused), (7, 1, 0));
}

#[test]
fn o03_a_hanging_endpoint_is_silent_until_it_ends() {
    let authd = start(|switches| switches.refresh = TokenBehaviour::Hang);
    let login = log_in(&authd, "");
    let body = written(&[("grant_type", "refresh_token"), ("refresh_token", &login.refresh)]);
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    let mut stream = send("POST", &format!("{}/token", authd.issuer()), &headers, &body);
    crate::wait(authd.wait_for_request(|seen| seen.is_grant("refresh_token")));
    drop(authd);
    assert!(receive(&mut stream).is_none());
}

#[test]
fn t47_a_single_use_token_takes_its_family_with_it() {
    let authd = start(|_| {});
    let login = log_in(&authd, "");
    let next = refresh(&authd, &login.client, &login.refresh).unwrap().json();
    let [access, second] = ["access_token", "refresh_token"].map(|name| next[name].as_str().unwrap());
    assert_ne!(second, login.refresh);
    assert_eq!(status_with(&authd, "tools/list", access), 200);
    assert_eq!(refresh(&authd, &login.client, &login.refresh).unwrap().error(), "invalid_grant");
    assert_eq!(status_with(&authd, "tools/list", access), 401);
    assert_eq!(refresh(&authd, &login.client, second).unwrap().error(), "invalid_grant");
    let counts = authd.counts();
    assert_eq!((counts.refreshes, counts.rotations, counts.reused), (3, 1, 1));
    assert_eq!((counts.concurrent, counts.stale), (0, 1));
}

#[test]
fn o04_refresh_tokens_may_be_repeated_or_left_out() {
    for (rotation, repeats) in [(RefreshRotation::Repeated, true), (RefreshRotation::Omitted, false)] {
        let authd = start(|switches| switches.rotation = rotation);
        let login = log_in(&authd, "");
        for _ in 0..2 {
            let next = refresh(&authd, &login.client, &login.refresh).unwrap().json();
            assert_eq!(next.get("refresh_token"), repeats.then_some(&json!(login.refresh)));
        }
        assert_eq!(authd.counts().reused, 0);
    }
    let without = start(|switches| switches.refresh_tokens = false);
    assert_eq!(log_in(&without, "").refresh, "");
}

#[test]
fn o05_an_answer_may_be_lost_after_the_rotation() {
    let authd = start(|switches| switches.refresh = TokenBehaviour::CutAfter);
    let login = log_in(&authd, "");
    assert!(refresh(&authd, &login.client, &login.refresh).is_none());
    assert_eq!(authd.counts().rotations, 1);
    authd.change_switches(|switches| switches.refresh = TokenBehaviour::Good);
    assert_eq!(refresh(&authd, &login.client, &login.refresh).unwrap().error(), "invalid_grant");
    assert_eq!(authd.counts().stale, 0, "nobody had seen the new tokens");
}

#[test]
fn o05_a_hook_is_told_of_every_rotation_before_and_after_the_answer() {
    let authd = start(|_| {});
    let told = Arc::new(Mutex::new(Vec::new()));
    let hook = Arc::clone(&told);
    authd.on_rotation(move |rotated| {
        hook.lock().unwrap().push((rotated.stage, rotated.old.clone(), rotated.new.clone()))
    });
    let login = log_in(&authd, "");
    let next = refresh(&authd, &login.client, &login.refresh).unwrap().json();
    let new = next["refresh_token"].as_str().unwrap().to_owned();
    drop(authd);
    let expected =
        [RotationStage::Kept, RotationStage::Written].map(|stage| (stage, login.refresh.clone(), new.clone()));
    assert_eq!(*told.lock().unwrap(), expected);
}

#[test]
fn o18_a_closed_gate_holds_everybody_and_tells_who_came_at_once() {
    let authd = start(|_| {});
    let login = log_in(&authd, "");
    authd.close_gate();
    std::thread::scope(|scope| {
        let ask = || refresh(&authd, &login.client, &login.refresh).unwrap().status;
        let both = [scope.spawn(ask), scope.spawn(ask)];
        crate::wait(authd.wait_for_nth_request(2, |seen| seen.is_grant("refresh_token")));
        assert_eq!(authd.counts().rotations, 0);
        authd.open_gate();
        let mut statuses = both.map(|thread| thread.join().unwrap());
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 400]);
    });
    assert_eq!((authd.counts().reused, authd.counts().concurrent), (1, 1));
}

#[test]
fn tokens_expire_by_command_and_by_use() {
    let authd = start(|_| {});
    let login = log_in(&authd, "");
    assert_eq!(status_with(&authd, "tools/list", &login.access), 200);
    authd.expire_access_tokens();
    assert_eq!(status_with(&authd, "tools/list", &login.access), 401);
    let next = refresh(&authd, &login.client, &login.refresh).unwrap().json();
    let access = next["access_token"].as_str().unwrap();
    authd.change_switches(|switches| switches.access_uses = Some(2));
    assert_eq!([0, 1, 2].map(|_| status_with(&authd, "tools/list", access)), [200, 200, 401]);
    authd.revoke_all();
    let reply = refresh(&authd, &login.client, next["refresh_token"].as_str().unwrap());
    assert_eq!(reply.unwrap().error(), "invalid_grant");
}

#[test]
fn tokens_are_given_back_where_that_is_possible() {
    for (revocation, status, then) in [
        (RevocationBehaviour::Good, 200, 401),
        (RevocationBehaviour::Absent, 404, 200),
        (RevocationBehaviour::ServerError, 500, 200),
    ] {
        let authd = start(|switches| switches.revocation = revocation);
        let login = log_in(&authd, "");
        let fields = [("token", login.refresh.as_str()), ("client_id", &login.client)];
        assert_eq!(form(&format!("{}/revoke", authd.issuer()), &fields).status, status);
        assert_eq!(status_with(&authd, "tools/list", &login.access), then);
        assert_eq!(authd.counts().revocations, u64::from(status == 200));
    }
}
