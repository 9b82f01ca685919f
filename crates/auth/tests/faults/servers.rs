//! What the protected server does: wants more, breaks off, wants nothing.

use wharf_net::{AuthRecovery, AuthRejection, Authorizer, HeaderMap, HeaderValue, header};
use wharf_testkit::authd::{ListenerSite, MetadataLocation, RecordedRequest, ScopeRequirement, TokenBehaviour};

use crate::scene::Scene;

#[tokio::test]
async fn open_server_causes_one_plain_request() {
    let scene = Scene::new(|switches| switches.open = true);
    assert_eq!(scene.ask(&scene.attended(), "tools/list").await, Ok(200));
    assert_eq!(scene.authd.requests().len(), 1);
    assert!(scene.authd.requests()[0].header("authorization").is_none());
}

#[tokio::test]
async fn login_requests_the_scope_of_the_challenge() {
    let scene = Scene::new(|switches| {
        switches.challenge_scope = Some("mcp:basic".to_owned());
        switches.scopes_supported = vec!["mcp:other".to_owned()];
    });
    assert_eq!(scene.ask(&scene.attended(), "tools/list").await, Ok(200));
    let page = scene.authd.wait_for_request(|seen| seen.path == "/authorize").await;
    assert_eq!(page.field("scope"), Some("mcp:basic"));
}

#[tokio::test]
async fn o15_stream_broken_by_expiry_costs_one_refresh() {
    let scene = Scene::new(|switches| switches.break_stream = true);
    let account = scene.logged_in().await;
    let mut response = scene.send(&account, "tools/call").await.unwrap();
    assert_eq!(response.status, 200);
    assert!(response.body.collect(1 << 20).await.is_err(), "the stream ended in order");
    assert_eq!(scene.authd.counts().refreshes, 0, "a token was requested too early");
    assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
    assert_eq!(scene.authd.counts().refreshes, 1);
    let calls = scene.authd.requests().iter().filter(|seen| seen.is_request("tools/call")).count();
    assert_eq!(calls, 1, "a call that may have been carried out is not made again");
}

#[tokio::test]
async fn o16_step_up_requires_an_attended_account() {
    let scene = Scene::new(|switches| {
        switches.challenge_scope = Some("mcp:basic".to_owned());
        switches.step_up = ScopeRequirement::Needs("mcp:write".to_owned());
    });
    let attended = scene.attended();
    assert_eq!(scene.ask(&attended, "tools/list").await, Ok(200));
    let alone = scene.account();
    let why = scene.ask(&alone, "tools/call").await.unwrap_err();
    assert_eq!(why.remedy, AuthRecovery::Scope("mcp:basic mcp:write".to_owned()));
    assert_eq!(scene.authd.counts().authorizations, 1);
    assert_eq!(scene.ask(&attended, "tools/call").await, Ok(200));
    let pages: Vec<_> = scene.authd.requests().into_iter().filter(|seen| seen.path == "/authorize").collect();
    assert_eq!(pages[1].field("scope"), Some("mcp:basic mcp:write"));
    assert_eq!(pages.len(), 2);
}

#[tokio::test]
async fn t48_endless_step_up_is_abandoned() {
    let scene = Scene::new(|switches| switches.step_up = ScopeRequirement::Forever);
    let account = scene.attended();
    let why = scene.ask(&account, "tools/call").await.unwrap_err();
    assert!(why.reason.contains("mcp:more-"), "{why:?}");
    assert!(scene.authd.counts().authorizations <= 3);
    let before = scene.authd.counts().authorizations;
    assert!(scene.ask(&account, "tools/call").await.is_err());
    assert_eq!(scene.authd.counts().authorizations, before);
}

#[tokio::test]
async fn o14_missing_metadata_does_not_use_presumed_endpoints() {
    let scene = Scene::new(|_| {});
    let account = scene.attended();
    assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
    scene.authd.expire_access_tokens();
    scene.authd.change_switches(|switches| {
        switches.description = MetadataLocation::Absent;
        switches.refresh = TokenBehaviour::InvalidGrant;
    });
    assert_eq!(scene.ask(&account, "tools/list").await.unwrap_err().remedy, AuthRecovery::Waiting);
    let presumed = ["/register", "/authorize", "/token"];
    let is_presumed =
        |seen: &RecordedRequest| seen.site == ListenerSite::Server && presumed.contains(&seen.path.as_str());
    assert!(!scene.authd.requests().iter().any(is_presumed));
    scene.authd.change_switches(|switches| switches.description = MetadataLocation::Path);
    assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
}

#[tokio::test]
async fn challenge_without_metadata_url_is_completed_by_a_probe() {
    let scene = Scene::new(|switches| switches.description = MetadataLocation::Header);
    let account = scene.attended();
    let headers =
        HeaderMap::from_iter([(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer scope=\"mcp:this\""))]);
    account.on_rejection(AuthRejection { status: 401, headers, serial: None }).await.unwrap();
    assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
    let page = scene.authd.wait_for_request(|seen| seen.path == "/authorize").await;
    assert_eq!(page.field("scope"), Some("mcp:this"));
}

#[tokio::test]
async fn t43_tokens_are_sent_only_to_their_server() {
    let scene = Scene::new(|_| {});
    let account = scene.attended();
    assert_eq!(scene.ask(&account, "tools/list").await, Ok(200));
    let elsewhere = scene.authd.requests().into_iter().filter(|seen| seen.site != ListenerSite::Server);
    let secrets = scene.authd.secrets();
    let shows = |seen: &RecordedRequest| {
        let header = seen.header("authorization").unwrap_or_default();
        secrets.iter().any(|secret| secret.starts_with("access-") && header.contains(secret.as_str()))
    };
    assert_eq!(elsewhere.filter(shows).count(), 0);
    assert!(scene.authd.requests().iter().any(shows), "the server itself sees them");
}
