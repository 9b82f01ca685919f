use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use wharf_net::{HeaderMap, StatusCode};
use wharf_testkit::transport_faults::Http1Request;

use super::*;
use crate::client::{ClientOrigin, TokenEndpointAuth};
use crate::login::scripted_site::{ScriptedSite, form_field};

const NOW: u64 = 1_000_000;
const YEAR: u64 = 365 * 86_400_000;

fn fetched(status: u16, json: Option<Value>) -> FetchedResponse {
    FetchedResponse { status: StatusCode::from_u16(status).unwrap(), headers: HeaderMap::new(), json }
}

fn usual() -> Value {
    json!({"access_token": "at", "token_type": "Bearer", "expires_in": 60, "refresh_token": "rt", "scope": "a b"})
}

/// The default response with one member replaced, or removed if `value` is null.
fn with(name: &str, value: Value) -> Result<TokenSet, TokenError> {
    let mut said = usual();
    match value {
        Value::Null => drop(said.as_object_mut().unwrap().remove(name)),
        value => said[name] = value,
    }
    parse_tokens(&fetched(200, Some(said)), NOW, None)
}

fn client(proof: TokenEndpointAuth, secret: Option<&str>) -> OAuthClient {
    let (id, secret) = ("me".to_owned(), secret.map(Secret::new));
    OAuthClient { id, secret, proof, origin: ClientOrigin::Registered, expires_at: None }
}

#[test]
fn token_response_is_parsed() {
    let tokens = with("token_type", json!("dPoP")).unwrap();
    assert!(tokens.is_bound() && tokens.token_type == "dPoP");
    let expected = TokenSet {
        access: Secret::new("at"),
        refresh: Some(Secret::new("rt")),
        expires_at: Some(NOW + 60_000),
        token_type: "bearer".to_owned(),
        scope: Some("a b".to_owned()),
    };
    assert_eq!(with("token_type", json!("bearer")).unwrap(), expected);
    assert!(!expected.is_bound());
}

#[test]
fn o17_invalid_lifetime_is_unknown() {
    for (lasts, expected) in [
        (json!(null), None),
        (json!(0), None),
        (json!(-1), None),
        (json!(-1e300), None),
        (json!("soon"), None),
        (json!("inf"), None),
        (json!("NaN"), None),
        (json!([60]), None),
        (json!(true), None),
        (json!(0.4), None),
        (json!(1), Some(1000)),
        (json!(90.5), Some(90_500)),
        (json!("3600"), Some(3_600_000)),
        (json!(" 3600 "), Some(3_600_000)),
        (json!(u64::MAX), Some(YEAR)),
        (json!(1e300), Some(YEAR)),
        (json!("1e300"), Some(YEAR)),
    ] {
        let found = with("expires_in", lasts.clone()).unwrap().expires_at;
        assert_eq!(found, expected.map(|lasts: u64| NOW + lasts), "{lasts}");
    }
    let late = parse_tokens(&fetched(200, Some(usual())), u64::MAX, None).unwrap();
    assert_eq!(late.expires_at, Some(u64::MAX));
}

#[test]
fn t49_tokens_unfit_for_a_header_are_rejected() {
    let most = 64 << 10;
    for token in [json!(null), json!(""), json!(7), json!("a b"), json!("a\r\nb: c"), json!("ü"), json!("\u{7f}")] {
        assert!(matches!(with("access_token", token.clone()), Err(TokenError::Unclear(_))), "{token}");
        // It does not go into a header, and may contain spaces.
        let refresh = (token == "a b").then(|| Secret::new("a b"));
        assert_eq!(with("refresh_token", token.clone()).unwrap().refresh, refresh, "{token}");
    }
    assert!(with("access_token", json!("x".repeat(most))).is_ok());
    assert!(with("access_token", json!("x".repeat(most + 1))).is_err());
    for kind in [json!(null), json!("mac"), json!("N_A"), json!(""), json!(["Bearer"])] {
        assert!(matches!(with("token_type", kind.clone()), Err(TokenError::Unclear(_))), "{kind}");
    }
    for scope in [json!(null), json!(""), json!(["a"]), json!("a\u{1b}[2J"), json!("a ".repeat(50_000))] {
        assert_eq!(with("scope", scope).unwrap().scope, None);
    }
}

#[test]
fn o04_rotated_refresh_token_is_never_reused() {
    let before =
        TokenSet { refresh: Some(Secret::new("old")), token_type: "DPoP".to_owned(), ..with("x", json!(1)).unwrap() };
    for (refresh, expected) in [
        (json!(null), Some("old")),
        (json!(""), Some("old")),
        (json!("new"), Some("new")),
        (json!(" n e w ~"), Some(" n e w ~")),
        (json!("n\tw"), None),
        (json!("n\u{fc}w"), None),
        (json!(7), None),
        (json!("x".repeat(1 << 20)), None),
    ] {
        let said = json!({"access_token": "at", "refresh_token": refresh});
        let after = parse_tokens(&fetched(200, Some(said)), NOW, Some(&before)).unwrap();
        assert_eq!(after.refresh.as_ref().map(Secret::reveal), expected);
        assert_eq!((after.token_type.as_str(), after.scope.as_deref()), ("DPoP", Some("a b")));
    }
    let odd = json!({"access_token": "at", "token_type": "mac"});
    assert!(parse_tokens(&fetched(200, Some(odd)), NOW, Some(&before)).is_err());
}

/// Returns the error code and whether it is final, or `None` if the response is unclear.
fn check(status: u16, said: Option<Value>) -> Option<(String, bool)> {
    match parse_tokens(&fetched(status, said), NOW, None).unwrap_err() {
        error @ TokenError::Refused { .. } => {
            let is_final = error.is_final();
            let TokenError::Refused { code, status: found, .. } = error else { unreachable!() };
            assert_eq!(found, status);
            Some((code, is_final))
        }
        _ => None,
    }
}

#[test]
fn o03_only_a_proper_invalid_grant_is_final() {
    let error = |code: &str| Some(json!({"error": code}));
    for (status, said, expected) in [
        (400, error("invalid_grant"), Some(("invalid_grant", true))),
        (401, error("invalid_grant"), Some(("invalid_grant", true))),
        (403, error("invalid_grant"), None),
        (200, error("invalid_grant"), None),
        (429, error("invalid_grant"), None),
        (500, error("invalid_grant"), None),
        (503, error("temporarily_unavailable"), None),
        (400, error("invalid_client"), Some(("invalid_client", false))),
        (401, error("invalid_client"), Some(("invalid_client", false))),
        (200, error("bad_verification_code"), Some(("bad_verification_code", false))),
        (400, error(""), None),
        (400, Some(json!({"error": {"code": "invalid_grant"}})), None),
        (400, Some(json!(["invalid_grant"])), None),
        (400, None, None),
        (401, None, None),
        (429, None, None),
        (502, None, None),
        (302, None, None),
        (200, None, None),
        (200, Some(json!([])), None),
        (400, Some(usual()), None),
    ] {
        let found = check(status, said.clone());
        let found = found.as_ref().map(|(code, is_final)| (code.as_str(), *is_final));
        assert_eq!(found, expected, "{status} {said:?}");
    }
}

#[test]
fn error_description_is_escaped_and_truncated() {
    let said = json!({"error": "x\u{1b}", "error_description": "y\u{202e}".repeat(500)});
    let Err(TokenError::Refused { code, description, .. }) = parse_tokens(&fetched(400, Some(said)), NOW, None) else {
        panic!()
    };
    assert_eq!(code, "x\\u{1b}");
    let description = description.unwrap();
    assert!(description.starts_with("y\\u{202e}y") && description.ends_with('…') && description.len() < 2000);
}

fn request<'a>(
    site: &ScriptedSite,
    endpoint: &'a str,
    client: &'a OAuthClient,
    dpop: Option<&'a DpopKey>,
) -> TokenRequest<'a> {
    assert!(endpoint.starts_with(&site.origin()));
    let fields = vec![("grant_type", "refresh_token"), ("refresh_token", "hush-hush")];
    TokenRequest { endpoint, named: UrlSource::ByServer, issuer: "https://as", client, dpop, fields }
}

/// Returns the claims of the proof in a request.
fn claims(asked: &Http1Request) -> Value {
    let claims = asked.header("dpop").unwrap().split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

#[tokio::test]
async fn nonce_is_repeated_in_a_new_proof_and_reused() {
    let site = ScriptedSite::start();
    let wants = "{\"error\":\"use_dpop_nonce\"}";
    site.queue_response("/token", "400 Bad Request", "DPoP-Nonce: n1\r\n", wants);
    site.queue_response("/token", "200 OK", "DPoP-Nonce: n2\r\n", &usual().to_string());
    let (endpoint, client, key) =
        (site.origin() + "/token", client(TokenEndpointAuth::None, None), DpopKey::generate().unwrap());
    request(&site, &endpoint, &client, Some(&key)).request_tokens(&site.attempt()).await.unwrap();
    request(&site, &endpoint, &client, Some(&key)).request_tokens(&site.attempt()).await.unwrap();
    let proofs: Vec<_> = site.requests_for("/token").iter().map(claims).collect();
    let nonces: Vec<_> = proofs.iter().map(|proof| proof["nonce"].as_str().unwrap_or_default()).collect();
    assert_eq!(nonces, ["", "n1", "n2"]);
    assert!(proofs[0]["jti"] != proofs[1]["jti"] && proofs.iter().all(|proof| proof["htu"] == *endpoint));
}

#[tokio::test]
async fn nonce_demand_is_answered_only_once() {
    let site = ScriptedSite::start();
    site.queue_response("/token", "400 Bad Request", "DPoP-Nonce: n1\r\n", "{\"error\":\"use_dpop_nonce\"}");
    site.queue_response("/token", "400 Bad Request", "DPoP-Nonce: n2\r\n", "{\"error\":\"use_dpop_nonce\"}");
    let (endpoint, client, key) =
        (site.origin() + "/token", client(TokenEndpointAuth::None, None), DpopKey::generate().unwrap());
    let error = request(&site, &endpoint, &client, Some(&key)).request_tokens(&site.attempt()).await.unwrap_err();
    assert!(matches!(error, LoginError::Token(TokenError::Refused { code, .. }) if code == "use_dpop_nonce"));
    assert_eq!(site.requests_for("/token").len(), 2);
    // Without a key there is no proof to put the nonce in.
    assert!(request(&site, &endpoint, &client, None).request_tokens(&site.attempt()).await.is_err());
    assert_eq!(site.requests_for("/token").len(), 3);
}

#[tokio::test]
async fn t50_errors_do_not_repeat_sent_secrets() {
    let site = ScriptedSite::start();
    for (error, description) in
        [("invalid_grant", "hush-hush is no token"), ("invalid_grant", "not a-secret"), ("hush-hush", "x")]
    {
        let said = json!({"error": error, "error_description": description}).to_string();
        site.queue_response("/token", "400 Bad Request", "", &said);
    }
    let (endpoint, client) = (site.origin() + "/token", client(TokenEndpointAuth::ClientSecretPost, Some("a-secret")));
    for _ in 0..3 {
        let error = request(&site, &endpoint, &client, None).request_tokens(&site.attempt()).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hush") && !shown.contains("a-secret"), "{shown}");
    }
    assert_eq!(form_field(&site.requests_for("/token")[0], "client_secret").as_deref(), Some("a-secret"));
}

#[tokio::test]
async fn t50_errors_do_not_repeat_parts_of_long_secrets() {
    let long: String = (0..1000).map(|number: u32| char::from(b'a' + (number * number % 26) as u8)).collect();
    let token = format!("{long}-hush-hush-{long}");
    let site = ScriptedSite::start();
    let repeats = [
        json!({"error": "invalid_grant", "error_description": format!("{} {token}", "x".repeat(150))}),
        json!({"error": "invalid_grant", "error_description": format!("never seen {}", &token[990..1020])}),
        json!({"error": token, "error_description": "x"}),
        json!({"error": format!("no:{}", &token[..80])}),
    ];
    for said in repeats.iter().chain(&repeats) {
        site.queue_response("/token", "400 Bad Request", "", &said.to_string());
    }
    let (endpoint, client) = (site.origin() + "/token", client(TokenEndpointAuth::None, None));
    for name in ["refresh_token", "code"] {
        for said in &repeats {
            let mut request = request(&site, &endpoint, &client, None);
            request.fields = vec![("grant_type", "x"), (name, &token)];
            let error = request.request_tokens(&site.attempt()).await.unwrap_err();
            let shown = format!("{error} {error:?}");
            let tells = token.as_bytes().windows(12).any(|piece| shown.contains(std::str::from_utf8(piece).unwrap()));
            assert!(!tells && shown.contains("400"), "{said}: {shown}");
        }
    }
}

#[tokio::test]
async fn t40_unsafe_token_endpoint_is_not_transient() {
    let site = ScriptedSite::start();
    let client = client(TokenEndpointAuth::None, None);
    site.queue_response("/moved", "307 Temporary Redirect", "Location: https://evil.example/\r\n", "");
    site.queue_response("/deep", "200 OK", "", &"[".repeat(1000));
    let moved = [site.origin() + "/moved", site.origin() + "/deep"];
    let others = ["https://169.254.169.254/token", "http://as.example/token", "javascript:x"];
    for endpoint in moved.iter().map(String::as_str).chain(others) {
        let mut request = request(&site, &moved[0], &client, None);
        request.endpoint = endpoint;
        let error = request.request_tokens(&site.attempt()).await.unwrap_err();
        assert!(matches!(&error, LoginError::Unsafe(told) if told.starts_with(endpoint)), "{error}");
        assert!(!error.is_transient());
    }
}

#[tokio::test]
async fn o03_unreachable_endpoint_is_not_a_refusal() {
    let site = ScriptedSite::start();
    let endpoint = site.origin() + "/token";
    let client = client(TokenEndpointAuth::None, None);
    site.queue_response("/token", "200 OK", "Content-Type: text/html\r\n", "<html>log in</html>");
    let page = request(&site, &endpoint, &client, None).request_tokens(&site.attempt()).await;
    assert!(matches!(page, Err(LoginError::Token(TokenError::Unclear(_)))));
    let mut other = request(&site, &endpoint, &client, None);
    other.endpoint = "http://127.0.0.1:1/token";
    let nobody = other.request_tokens(&site.attempt()).await;
    assert!(matches!(nobody, Err(LoginError::Token(TokenError::Unclear(_)))));
}
