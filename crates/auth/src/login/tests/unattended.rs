use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::*;
use crate::settings::AssertionSource;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// A test server with a preregistered client.
fn site(grant: TokenGrant, secret: Option<&str>) -> ScriptedSite {
    let mut site = ScriptedSite::start();
    site.settings.grant = grant;
    site.settings.client_id = Some("me".to_owned());
    site.settings.client_secret = secret.map(Secret::new);
    describe_servers(&site, &json!({}));
    site
}

async fn log_in_alone(site: &ScriptedSite) -> Result<StoredLogin, LoginError> {
    sendable(log_in(&site.attempt(), None, None, None, Some("a b".to_owned()))).await
}

fn check(site: &ScriptedSite, path: &str, fields: &[(&str, &str)]) {
    let [asked] = &site.requests_for(path)[..] else { panic!("one request") };
    for (name, value) in fields {
        assert_eq!(form_field(asked, name).as_deref(), Some(*value), "{name}");
    }
}

#[tokio::test]
async fn client_credentials_with_secret() {
    let site = site(TokenGrant::ClientSecret, Some("s"));
    site.queue_document("/token", &tokens());
    let kept = log_in_alone(&site).await.unwrap();
    assert_eq!((kept.client.origin, kept.asked.as_deref()), (ClientOrigin::Given, Some("a b")));
    let resource = site.origin() + "/mcp";
    check(&site, "/token", &[("grant_type", "client_credentials"), ("scope", "a b"), ("resource", &resource)]);
    assert_eq!(
        site.requests_for("/token")[0].header("authorization").unwrap(),
        format!("Basic {}", STANDARD.encode("me:s"))
    );
}

#[tokio::test]
async fn client_credentials_with_private_key() {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let der = STANDARD.encode(pair.to_pkcs8v1().unwrap().as_ref());
    let key = Secret::new(format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n"));
    let site = site(TokenGrant::ClientKey { key, algorithm: Some("ES256".to_owned()) }, None);
    site.queue_document("/token", &tokens());
    log_in_alone(&site).await.unwrap();
    check(&site, "/token", &[("grant_type", "client_credentials")]);
    let assertion = form_field(&site.requests_for("/token")[0], "client_assertion").unwrap();
    let claims = URL_SAFE_NO_PAD.decode(assertion.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!((&claims["aud"], &claims["sub"]), (&json!(site.origin()), &json!("me")));
}

#[tokio::test]
async fn enterprise_grant_exchanges_the_id_token() {
    let id_token = AssertionSource::Given(Secret::new("id.to.ken"));
    let grant = TokenGrant::Enterprise {
        token_url: String::new(),
        client_id: "at-idp".to_owned(),
        client_secret: None,
        id_token: id_token.clone(),
    };
    let mut site = site(grant, Some("s"));
    let token_url = site.origin() + "/idp";
    site.settings.grant =
        TokenGrant::Enterprise { token_url, client_id: "at-idp".to_owned(), client_secret: None, id_token };
    let kind = "urn:ietf:params:oauth:token-type:id-jag";
    site.queue_document("/idp", &json!({"access_token": "j.a.g", "issued_token_type": kind, "token_type": "N_A"}));
    site.queue_document("/token", &tokens());
    log_in_alone(&site).await.unwrap();
    let (issuer, resource) = (site.origin(), site.origin() + "/mcp");
    let fields = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", kind),
        ("audience", &issuer),
        ("resource", &resource),
        ("subject_token", "id.to.ken"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("client_id", "at-idp"),
    ];
    check(&site, "/idp", &fields);
    check(&site, "/token", &[("grant_type", JWT_BEARER), ("assertion", "j.a.g"), ("scope", "a b")]);
    assert!(site.requests_for("/token")[0].header("authorization").unwrap().starts_with("Basic "));
}

#[tokio::test]
async fn unusable_token_exchange_result_is_not_forwarded() {
    for answer in [
        json!({"access_token": "at", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}),
        json!({"access_token": "a b"}),
        json!({"error": "invalid_grant"}),
    ] {
        let id_token = AssertionSource::Given(Secret::new("id.to.ken"));
        let mut site = site(TokenGrant::ClientSecret, Some("s"));
        let token_url = site.origin() + "/idp";
        let client_secret = Some(Secret::new("t"));
        site.settings.grant = TokenGrant::Enterprise { token_url, client_id: "c".to_owned(), client_secret, id_token };
        site.queue_document("/idp", &answer);
        assert!(matches!(log_in_alone(&site).await, Err(LoginError::Token(_))), "{answer}");
        assert_eq!((site.requests_for("/idp").len(), site.requests_for("/token").len()), (1, 0));
        assert_eq!(
            site.requests_for("/idp")[0].header("authorization").unwrap(),
            format!("Basic {}", STANDARD.encode("c:t"))
        );
    }
}

#[tokio::test]
async fn rejected_workload_assertion_has_no_fallback() {
    let assertion = AssertionSource::Given(Secret::new("w.o.rk"));
    let site = site(TokenGrant::Workload { assertion }, None);
    site.queue_response("/token", "400 Bad Request", "", "{\"error\":\"invalid_grant\"}")
        .queue_document("/token", &tokens());
    let error = log_in_alone(&site).await.unwrap_err();
    assert!(
        matches!(&error, LoginError::Token(TokenError::Refused { code, .. }) if code == "invalid_grant"),
        "{error}"
    );
    check(&site, "/token", &[("grant_type", JWT_BEARER), ("assertion", "w.o.rk"), ("client_id", "me")]);
    assert!(log_in_alone(&site).await.is_ok());
}
