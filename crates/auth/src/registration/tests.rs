use url::Url;
use wharf_net::NetOptions;

use super::*;
use crate::auth_http::static_site::{StaticSite, http_response};

const REDIRECT: &str = "http://127.0.0.1:4711/callback";

/// An authorization server with registration at `/register` and these authentication methods.
fn server(site: &StaticSite, proofs: &[&str]) -> AuthServerMetadata {
    AuthServerMetadata {
        issuer: site.origin(),
        registration_endpoint: Some(format!("{}/register", site.origin())),
        proofs: proofs.iter().map(|&proof| proof.to_owned()).collect(),
        ..AuthServerMetadata::default()
    }
}

async fn client(server: &AuthServerMetadata, settings: &AuthSettings) -> Result<OAuthClient, LoginError> {
    let outside = AuthHttpClient::new(&Url::parse("http://localhost/mcp").unwrap(), NetOptions::default());
    let wanted = ClientRequirements { redirect_uri: Some(REDIRECT), scope: Some("a b") };
    choose_client(&outside, server, settings, wanted).await
}

/// Returns the client for this registration response.
async fn registered_as(proofs: &[&str], said: Value) -> Result<OAuthClient, LoginError> {
    let site = StaticSite::start();
    site.respond_with("/register", http_response("201 Created", "", &said.to_string()));
    client(&server(&site, proofs), &AuthSettings::default()).await
}

async fn proof_of(proofs: &[&str], said: Value) -> TokenEndpointAuth {
    registered_as(proofs, said).await.unwrap().proof
}

#[tokio::test]
async fn client_choice_is_configured_then_document_then_registered() {
    let site = StaticSite::start();
    site.respond_with("/register", http_response("201 Created", "", r#"{"client_id":"new"}"#));
    let mut server = server(&site, &[]);
    let client_metadata_url = Some("https://wharf.example/client.json".to_owned());
    let mut settings = AuthSettings { client_metadata_url, ..AuthSettings::default() };

    let found = client(&server, &settings).await.unwrap();
    assert_eq!((found.id.as_str(), found.origin), ("new", ClientOrigin::Registered));
    server.takes_documents = true;
    let found = client(&server, &settings).await.unwrap();
    assert_eq!((found.id.as_str(), found.origin), ("https://wharf.example/client.json", ClientOrigin::Document));
    settings.client_id = Some("given".to_owned());
    let found = client(&server, &settings).await.unwrap();
    assert_eq!((found.id.as_str(), found.origin), ("given", ClientOrigin::Given));
    assert_eq!(site.request_lines(), ["POST /register"]);
}

#[tokio::test]
async fn registration_request_is_complete() {
    let site = StaticSite::start();
    site.respond_with("/register", http_response("201 Created", "", r#"{"client_id":"new"}"#));
    let mut server = server(&site, &[]);
    client(&server, &AuthSettings::default()).await.unwrap();
    let expected = json!({
        "client_name": "Wharf",
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
        "scope": "a b",
    });
    assert_eq!(site.requests()[0].json(), expected);

    server.device_authorization_endpoint = Some("https://as.example/device".to_owned());
    client(&server, &AuthSettings::default()).await.unwrap();
    let grants = json!(["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"]);
    assert_eq!(site.requests()[1].json()["grant_types"], grants);
}

#[test]
fn public_client_is_preferred() {
    for (listed, expected) in [
        (&[][..], "none"),
        (&["client_secret_basic", "none"], "none"),
        (&["client_secret_post", "client_secret_basic"], "client_secret_basic"),
        (&["private_key_jwt", "client_secret_post"], "client_secret_post"),
        (&["private_key_jwt"], "none"),
    ] {
        let proofs = listed.iter().map(|&method| method.to_owned()).collect();
        assert_eq!(
            preferred_auth_method(&AuthServerMetadata { proofs, ..AuthServerMetadata::default() }),
            expected,
            "{listed:?}"
        );
    }
}

#[tokio::test]
async fn registration_response_overrides_metadata_auth_method() {
    let with = |method: &str| json!({"client_id": "x", "client_secret": "y", "token_endpoint_auth_method": method});
    let silent = json!({"client_id": "x", "client_secret": "y"});
    for (listed, said, expected) in [
        (&["none"][..], with("client_secret_basic"), TokenEndpointAuth::ClientSecretBasic),
        (&["client_secret_basic"], with("client_secret_post"), TokenEndpointAuth::ClientSecretPost),
        (&["client_secret_basic"], with("none"), TokenEndpointAuth::None),
        (&["client_secret_post"], with("tls_client_auth"), TokenEndpointAuth::ClientSecretPost),
        (&[], silent.clone(), TokenEndpointAuth::ClientSecretBasic),
        (&["client_secret_post", "client_secret_basic"], silent.clone(), TokenEndpointAuth::ClientSecretBasic),
        (&["client_secret_post"], silent.clone(), TokenEndpointAuth::ClientSecretPost),
        (&["none"], silent, TokenEndpointAuth::None),
        (&["client_secret_basic"], json!({"client_id": "x"}), TokenEndpointAuth::None),
        (&[], json!({"client_id": "x", "token_endpoint_auth_method": "client_secret_basic"}), TokenEndpointAuth::None),
    ] {
        assert_eq!(proof_of(listed, said.clone()).await, expected, "{listed:?} {said}");
    }
}

#[tokio::test]
async fn client_secret_expiry_is_parsed_and_zero_is_never() {
    for (ends, expected) in [
        (json!(null), None),
        (json!(0), None),
        (json!(-1), None),
        (json!("soon"), None),
        (json!(1e300), None),
        (json!(1_900_000_000), Some(1_900_000_000_000)),
        (json!(u64::MAX), Some(u64::MAX)),
    ] {
        let said = json!({"client_id": "x", "client_secret": "y", "client_secret_expires_at": ends});
        assert_eq!(registered_as(&[], said).await.unwrap().expires_at, expected, "{ends}");
    }
    let bare = json!({"client_id": "x", "client_secret_expires_at": 1_900_000_000});
    assert_eq!(registered_as(&[], bare).await.unwrap().expires_at, None);
}

#[tokio::test]
async fn configured_client_authenticates_with_its_credential() {
    let site = StaticSite::start();
    let key = TokenGrant::ClientKey { key: Secret::new("key"), algorithm: None };
    for (listed, secret, grant, expected) in [
        (&[][..], None, TokenGrant::Person, TokenEndpointAuth::None),
        (&[], Some("s"), TokenGrant::Person, TokenEndpointAuth::ClientSecretBasic),
        (&["none"], Some("s"), TokenGrant::Person, TokenEndpointAuth::ClientSecretBasic),
        (&["client_secret_post"], Some("s"), TokenGrant::ClientSecret, TokenEndpointAuth::ClientSecretPost),
        (
            &["client_secret_post", "client_secret_basic"],
            Some("s"),
            TokenGrant::Person,
            TokenEndpointAuth::ClientSecretBasic,
        ),
        (&["client_secret_basic"], None, key, TokenEndpointAuth::PrivateKeyJwt),
    ] {
        let mut settings = AuthSettings::default();
        (settings.client_id, settings.client_secret) = (Some("given".to_owned()), secret.map(Secret::new));
        settings.grant = grant;
        let found = client(&server(&site, listed), &settings).await.unwrap();
        assert_eq!((found.proof, found.secret), (expected, secret.map(Secret::new)), "{listed:?}");
    }
    assert_eq!(site.connections(), 0);
}

#[tokio::test]
async fn o11_refused_registration_suggests_a_manual_client() {
    let site = StaticSite::start();
    let mut server = server(&site, &[]);
    for (status, body, expected) in [
        (
            "400 Bad Request",
            r#"{"error":"invalid_redirect_uri"}"#,
            "responded with 400 Bad Request (`invalid_redirect_uri`); ",
        ),
        ("400 Bad Request", r#"{"error":"hush"}"#, "responded with 400 Bad Request; "),
        ("401 Unauthorized", "", "responded with 401 Unauthorized; "),
        ("403 Forbidden", "<html>hush", "responded with 403 Forbidden; "),
        ("404 Not Found", "", "responded with 404 Not Found; "),
        ("201 Created", "hush", "the response has no `client_id`; "),
        ("201 Created", r#"{"client_id":7}"#, "the response has no `client_id`; "),
        ("200 OK", r#"{"client_id":""}"#, "the response has no `client_id`; "),
    ] {
        site.respond_with("/register", http_response(status, "", body));
        let error = client(&server, &AuthSettings::default()).await.unwrap_err();
        let told = error.to_string();
        assert!(matches!(error, LoginError::Registration(_)) && told.contains(expected), "{told}");
        assert!(
            told.ends_with("register a client manually and set `oauth.client_id`") && !told.contains("hush"),
            "{told}"
        );
    }
    server.named = EndpointSource::Presumed;
    let told = client(&server, &AuthSettings::default()).await.unwrap_err().to_string();
    assert!(told.ends_with("set `Authorization` in the entry's `headers`"), "{told}");
    server.registration_endpoint = None;
    let told = client(&server, &AuthSettings::default()).await.unwrap_err().to_string();
    assert!(told.contains("does not support dynamic client registration; register a client manually"), "{told}");
}

#[tokio::test]
async fn o11_transient_registration_failure_is_not_a_refusal() {
    let site = StaticSite::start();
    let mut server = server(&site, &[]);
    for status in ["503 Service Unavailable", "429 Too Many Requests"] {
        site.respond_with("/register", http_response(status, "", "hush"));
        let error = client(&server, &AuthSettings::default()).await.unwrap_err();
        assert!(error.is_transient() && !error.to_string().contains("hush"), "{error}");
    }
    drop(site);
    assert!(client(&server, &AuthSettings::default()).await.unwrap_err().is_transient());
    server.registration_endpoint = Some("https://169.254.169.254/register".to_owned());
    let error = client(&server, &AuthSettings::default()).await.unwrap_err();
    assert!(
        matches!(&error, LoginError::Registration(told) if told.contains("connections to 169.254.169.254 are not allowed")),
        "{error}"
    );
}

#[tokio::test]
async fn unattended_login_needs_a_configured_client() {
    let site = StaticSite::start();
    let (server, mut settings) = (server(&site, &[]), AuthSettings::default());
    let outside = AuthHttpClient::new(&Url::parse("http://localhost/mcp").unwrap(), NetOptions::default());
    let wanted = || ClientRequirements { redirect_uri: None, scope: None };
    let told = choose_client(&outside, &server, &settings, wanted()).await.unwrap_err().to_string();
    assert!(told.contains("set `oauth.client_id`"), "{told}");
    settings.client_id = Some("given".to_owned());
    assert_eq!(choose_client(&outside, &server, &settings, wanted()).await.unwrap().id, "given");
    assert_eq!(site.connections(), 0);
}

#[tokio::test]
async fn client_metadata_url_must_be_https_with_a_path() {
    let site = StaticSite::start();
    let (mut server, mut settings) = (server(&site, &[]), AuthSettings::default());
    server.takes_documents = true;
    for address in ["http://localhost/x", "https://wharf.example", "https://wharf.example/", "https://a@b/c", "x"] {
        settings.client_metadata_url = Some(address.to_owned());
        let told = client(&server, &settings).await.unwrap_err().to_string();
        assert!(told.contains("`oauth.client_metadata_url`"), "{address}: {told}");
    }
    assert_eq!(site.connections(), 0);
}
