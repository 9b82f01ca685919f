use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::*;
use crate::settings::AssertionSource;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// A test server with a preregistered client.
fn desk(grant: TokenGrant, secret: Option<&str>) -> ScriptedSite {
    let mut desk = ScriptedSite::start();
    desk.settings.grant = grant;
    desk.settings.client_id = Some("me".to_owned());
    desk.settings.client_secret = secret.map(Secret::new);
    describe_servers(&desk, &json!({}));
    desk
}

async fn log_in_alone(desk: &ScriptedSite) -> Result<StoredLogin, LoginError> {
    sendable(log_in(&desk.attempt(), None, None, None, Some("a b".to_owned()))).await
}

fn check(desk: &ScriptedSite, path: &str, fields: &[(&str, &str)]) {
    let [asked] = &desk.requests_for(path)[..] else { panic!("one request") };
    for (name, value) in fields {
        assert_eq!(asked.field(name).as_deref(), Some(*value), "{name}");
    }
}

#[tokio::test]
async fn a_client_is_its_own_account_by_its_secret() {
    let desk = desk(TokenGrant::ClientSecret, Some("s"));
    desk.queue_document("/token", &tokens());
    let kept = log_in_alone(&desk).await.unwrap();
    assert_eq!((kept.client.origin, kept.asked.as_deref()), (ClientOrigin::Given, Some("a b")));
    let resource = desk.origin() + "/mcp";
    check(&desk, "/token", &[("grant_type", "client_credentials"), ("scope", "a b"), ("resource", &resource)]);
    assert_eq!(desk.requests_for("/token")[0].headers["authorization"], format!("Basic {}", STANDARD.encode("me:s")));
}

#[tokio::test]
async fn a_client_is_its_own_account_by_its_key() {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let der = STANDARD.encode(pair.to_pkcs8v1().unwrap().as_ref());
    let key = Secret::new(format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n"));
    let desk = desk(TokenGrant::ClientKey { key, algorithm: Some("ES256".to_owned()) }, None);
    desk.queue_document("/token", &tokens());
    log_in_alone(&desk).await.unwrap();
    check(&desk, "/token", &[("grant_type", "client_credentials")]);
    let assertion = desk.requests_for("/token")[0].field("client_assertion").unwrap();
    let claims = URL_SAFE_NO_PAD.decode(assertion.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!((&claims["aud"], &claims["sub"]), (&json!(desk.origin()), &json!("me")));
}

#[tokio::test]
async fn an_enterprise_vouches_for_a_person() {
    let id_token = AssertionSource::Given(Secret::new("id.to.ken"));
    let grant = TokenGrant::Enterprise {
        token_url: String::new(),
        client_id: "at-idp".to_owned(),
        client_secret: None,
        id_token: id_token.clone(),
    };
    let mut desk = desk(grant, Some("s"));
    let token_url = desk.origin() + "/idp";
    desk.settings.grant =
        TokenGrant::Enterprise { token_url, client_id: "at-idp".to_owned(), client_secret: None, id_token };
    let kind = "urn:ietf:params:oauth:token-type:id-jag";
    desk.queue_document("/idp", &json!({"access_token": "j.a.g", "issued_token_type": kind, "token_type": "N_A"}));
    desk.queue_document("/token", &tokens());
    log_in_alone(&desk).await.unwrap();
    let (issuer, resource) = (desk.origin(), desk.origin() + "/mcp");
    let fields = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", kind),
        ("audience", &issuer),
        ("resource", &resource),
        ("subject_token", "id.to.ken"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("client_id", "at-idp"),
    ];
    check(&desk, "/idp", &fields);
    check(&desk, "/token", &[("grant_type", JWT_BEARER), ("assertion", "j.a.g"), ("scope", "a b")]);
    assert!(desk.requests_for("/token")[0].headers["authorization"].starts_with("Basic "));
}

#[tokio::test]
async fn a_statement_of_another_kind_is_shown_to_nobody() {
    for answer in [
        json!({"access_token": "at", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}),
        json!({"access_token": "a b"}),
        json!({"error": "invalid_grant"}),
    ] {
        let id_token = AssertionSource::Given(Secret::new("id.to.ken"));
        let mut desk = desk(TokenGrant::ClientSecret, Some("s"));
        let token_url = desk.origin() + "/idp";
        let client_secret = Some(Secret::new("t"));
        desk.settings.grant = TokenGrant::Enterprise { token_url, client_id: "c".to_owned(), client_secret, id_token };
        desk.queue_document("/idp", &answer);
        assert!(matches!(log_in_alone(&desk).await, Err(LoginError::Token(_))), "{answer}");
        assert_eq!((desk.requests_for("/idp").len(), desk.requests_for("/token").len()), (1, 0));
        assert_eq!(desk.requests_for("/idp")[0].headers["authorization"], format!("Basic {}", STANDARD.encode("c:t")));
    }
}

#[tokio::test]
async fn a_workload_is_refused_once_and_takes_no_other_way() {
    let assertion = AssertionSource::Given(Secret::new("w.o.rk"));
    let desk = desk(TokenGrant::Workload { assertion }, None);
    desk.queue_response("/token", "400 Bad Request", "", "{\"error\":\"invalid_grant\"}")
        .queue_document("/token", &tokens());
    let error = log_in_alone(&desk).await.unwrap_err();
    assert!(
        matches!(&error, LoginError::Token(TokenError::Refused { code, .. }) if code == "invalid_grant"),
        "{error}"
    );
    check(&desk, "/token", &[("grant_type", JWT_BEARER), ("assertion", "w.o.rk"), ("client_id", "me")]);
    assert!(log_in_alone(&desk).await.is_ok());
}
