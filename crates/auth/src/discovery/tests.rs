mod hostile;

use serde_json::{Value, json};
use wharf_net::NetOptions;

use super::*;
use crate::auth_http::static_site::{StaticSite, http_response};
use crate::challenge::TokenScheme;

const PATH_METADATA: &str = "/.well-known/oauth-protected-resource/mcp";
const ROOT_METADATA: &str = "/.well-known/oauth-protected-resource";
const ISSUER_METADATA: &str = "/.well-known/oauth-authorization-server";
const OPENID_METADATA: &str = "/.well-known/openid-configuration";

/// A server at `/mcp` and an authorization server, on separate test servers without any documents.
struct DiscoveryBench {
    server: StaticSite,
    authority: StaticSite,
    settings: AuthSettings,
}

impl DiscoveryBench {
    fn new() -> Self {
        Self { server: StaticSite::start(), authority: StaticSite::start(), settings: AuthSettings::default() }
    }

    /// Creates a world in which all metadata are at the first URL tried.
    fn described() -> Self {
        let world = Self::new();
        world.server.serve_document(PATH_METADATA, &world.description());
        world.authority.serve_document(ISSUER_METADATA, &metadata(&world.authority.origin()));
        world
    }

    fn description(&self) -> Value {
        json!({
            "resource": format!("{}/mcp", self.server.origin()),
            "authorization_servers": [self.authority.origin()],
            "scopes_supported": ["a", "b"],
        })
    }

    async fn discover(&self) -> Result<DiscoveryResult, LoginError> {
        self.discover_at(None).await
    }

    async fn discover_at(&self, resource_metadata: Option<String>) -> Result<DiscoveryResult, LoginError> {
        let challenge = AuthChallenge { scheme: TokenScheme::Bearer, resource_metadata, scope: None, error: None };
        let server = Url::parse(&format!("{}/mcp", self.server.origin())).unwrap();
        let outside = AuthHttpClient::new(&server, NetOptions::default());
        discover(&outside, &server, Some(&challenge), &self.settings).await
    }

    /// Returns the error message.
    async fn error_message(&self) -> String {
        self.discover().await.unwrap_err().to_string()
    }
}

fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "code_challenge_methods_supported": ["plain", "S256"],
    })
}

fn gets(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| format!("GET {path}")).collect()
}

#[tokio::test]
async fn metadata_url_in_challenge_is_used_exclusively() {
    let world = DiscoveryBench::described();
    world
        .server
        .serve_document("/custom", &world.description())
        .serve_document(ROOT_METADATA, &json!({"resource": "https://trap"}));
    let found = world.discover_at(Some(format!("{}/custom", world.server.origin()))).await.unwrap();
    assert_eq!(found.resource, Some(format!("{}/mcp", world.server.origin())));
    assert_eq!((found.scopes, found.needs_dpop), (vec!["a".to_owned(), "b".to_owned()], false));
    assert_eq!(found.server.issuer, world.authority.origin());
    assert_eq!(world.server.request_lines(), ["GET /custom"]);
    assert_eq!(world.authority.request_lines(), gets(&[ISSUER_METADATA]));

    let error = world.discover_at(Some(format!("{}/gone", world.server.origin()))).await.unwrap_err();
    let origin = world.server.origin();
    let expected =
        format!("the metadata URL sent by the server is not usable ({origin}/gone: responded with 404 Not Found)");
    assert!(matches!(&error, LoginError::Discovery(told) if told.starts_with(&expected)), "{error}");
    assert!(error.to_string().ends_with("set `Authorization` in the entry's `headers`"), "{error}");
    assert_eq!(world.server.request_lines(), ["GET /custom", "GET /gone"]);
}

#[tokio::test]
async fn path_metadata_is_tried_before_root_metadata() {
    let world = DiscoveryBench::described();
    world.server.serve_document(ROOT_METADATA, &json!({"resource": "https://trap"}));
    world.discover().await.unwrap();
    assert_eq!(world.server.request_lines(), gets(&[PATH_METADATA]));

    let world = DiscoveryBench::described();
    let mut description = world.description();
    // As written, without a trailing slash.
    description["resource"] = world.server.origin().into();
    world
        .server
        .respond_with(PATH_METADATA, http_response("200 OK", "", "<html>"))
        .serve_document(ROOT_METADATA, &description);
    let found = world.discover().await.unwrap();
    assert_eq!(found.resource, Some(world.server.origin()));
    assert_eq!(world.server.request_lines(), gets(&[PATH_METADATA, ROOT_METADATA]));
}

#[tokio::test]
async fn t43_metadata_of_another_resource_ends_discovery() {
    for resource in ["https://evil.example/mcp", "http://127.0.0.1/mcp", "not an address", "\u{1b}[2J"] {
        let world = DiscoveryBench::described();
        let mut description = world.description();
        description["resource"] = resource.into();
        world.server.serve_document(PATH_METADATA, &description).serve_document(ROOT_METADATA, &world.description());
        let error = world.discover().await.unwrap_err();
        let LoginError::WrongResource { found, dialled } = &error else { panic!("{error:?}") };
        assert_eq!((found.contains('\u{1b}'), dialled), (false, &format!("{}/mcp", world.server.origin())));
        assert_eq!(
            (world.server.request_lines(), world.authority.connections()),
            (gets(&[PATH_METADATA]), 0),
            "{resource}"
        );
    }
}

#[tokio::test]
async fn o07_issuer_with_path_has_three_metadata_urls() {
    let world = DiscoveryBench::described();
    let issuer = format!("{}/tenant", world.authority.origin());
    let mut description = world.description();
    description["authorization_servers"] = json!([issuer]);
    world.server.serve_document(PATH_METADATA, &description);
    let places =
        [format!("{ISSUER_METADATA}/tenant"), format!("{OPENID_METADATA}/tenant"), format!("/tenant{OPENID_METADATA}")];
    world.authority.serve_document(&places[2], &metadata(&issuer));
    let found = world.discover().await.unwrap();
    assert_eq!(found.server.issuer, issuer);
    assert_eq!(world.authority.request_lines(), gets(&places.each_ref().map(String::as_str)));
}

#[tokio::test]
async fn t41_metadata_of_another_issuer_is_discarded() {
    let world = DiscoveryBench::described();
    let origin = world.authority.origin();
    for other in [format!("{origin}/"), origin.replace("127.0.0.1", "localhost"), "https://evil.example".to_owned()] {
        world.authority.serve_document(ISSUER_METADATA, &metadata(&other));
        let told = world.error_message().await;
        assert!(told.contains(&format!("{origin}{ISSUER_METADATA}: has another issuer, `{other}`; ")), "{told}");
        assert!(told.contains(&format!("{origin}{OPENID_METADATA}: responded with 404 Not Found")), "{told}");
    }
    // The second URL is equally valid.
    world.authority.serve_document(OPENID_METADATA, &metadata(&origin));
    assert_eq!(world.discover().await.unwrap().server.issuer, origin);
}

#[tokio::test]
async fn first_usable_authorization_server_is_selected() {
    let world = DiscoveryBench::described();
    let mut description = world.description();
    let last = world.authority.origin();
    description["authorization_servers"] = json!(["javascript:x", format!("{last}/no"), 7, last]);
    world.server.serve_document(PATH_METADATA, &description);
    assert_eq!(world.discover().await.unwrap().server.issuer, last);
    assert_eq!(world.authority.request_lines().len(), 4);

    let many: Vec<String> = (0..100).map(|number| format!("{last}/{number}")).collect();
    description["authorization_servers"] = json!(many);
    world.server.serve_document(PATH_METADATA, &description);
    assert!(world.error_message().await.contains("none of the server's authorization servers has usable metadata"));
    assert_eq!(world.authority.request_lines().len(), 4 + 5 * 3);
}

#[tokio::test]
async fn all_authorization_server_metadata_is_parsed() {
    let world = DiscoveryBench::described();
    let origin = world.authority.origin();
    let mut document = metadata(&origin);
    for (name, value) in [
        ("registration_endpoint", json!("https://as/register")),
        ("revocation_endpoint", json!("https://as/revoke")),
        ("device_authorization_endpoint", json!("https://as/device")),
        ("scopes_supported", json!(["x", "offline_access"])),
        ("token_endpoint_auth_methods_supported", json!(["none"])),
        ("client_id_metadata_document_supported", json!(true)),
        ("authorization_response_iss_parameter_supported", json!(true)),
        ("dpop_signing_alg_values_supported", json!(["ES256"])),
    ] {
        document[name] = value;
    }
    world.authority.serve_document(ISSUER_METADATA, &document);
    let mut description = world.description();
    description["dpop_bound_access_tokens_required"] = true.into();
    world.server.serve_document(PATH_METADATA, &description);
    let found = world.discover().await.unwrap();
    let expected = AuthServerMetadata {
        issuer: origin.clone(),
        authorization_endpoint: Some(format!("{origin}/authorize")),
        token_endpoint: Some(format!("{origin}/token")),
        registration_endpoint: Some("https://as/register".to_owned()),
        revocation_endpoint: Some("https://as/revoke".to_owned()),
        device_authorization_endpoint: Some("https://as/device".to_owned()),
        scopes: vec!["x".to_owned(), "offline_access".to_owned()],
        proofs: vec!["none".to_owned()],
        takes_documents: true,
        names_itself: true,
        dpop_algorithms: vec!["ES256".to_owned()],
        takes_s256: true,
        named: EndpointSource::Metadata,
        is_guessed: false,
    };
    assert_eq!((found.server, found.needs_dpop), (expected, true));
}

#[tokio::test]
async fn server_origin_is_queried_without_resource_metadata() {
    let world = DiscoveryBench::new();
    let origin = world.server.origin();
    let places = [PATH_METADATA, ROOT_METADATA, ISSUER_METADATA, OPENID_METADATA];
    for issuer in [origin.clone(), format!("{origin}/")] {
        world.server.serve_document(OPENID_METADATA, &metadata(&issuer));
        let found = world.discover().await.unwrap();
        assert_eq!((found.resource, found.server.issuer, found.server.named), (None, issuer, EndpointSource::Metadata));
    }
    assert_eq!(world.server.request_lines(), [gets(&places), gets(&places)].concat());

    world.server.serve_document(OPENID_METADATA, &metadata("https://evil.example"));
    let told = world.error_message().await;
    assert!(told.contains("has another issuer, `https://evil.example`"), "{told}");
}

#[tokio::test]
async fn endpoints_of_2025_03_26_are_presumed_without_metadata() {
    let world = DiscoveryBench::new();
    let origin = world.server.origin();
    let found = world.discover().await.unwrap();
    assert_eq!((found.resource, found.scopes), (None, Vec::new()));
    let expected = AuthServerMetadata {
        issuer: origin.clone(),
        authorization_endpoint: Some(format!("{origin}/authorize")),
        token_endpoint: Some(format!("{origin}/token")),
        registration_endpoint: Some(format!("{origin}/register")),
        named: EndpointSource::Presumed,
        is_guessed: true,
        ..AuthServerMetadata::default()
    };
    assert_eq!(found.server, expected);
}

#[tokio::test]
async fn o07_unavailable_metadata_is_a_transient_error() {
    for status in ["429 Too Many Requests", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"] {
        for place in [PATH_METADATA, ROOT_METADATA, ISSUER_METADATA] {
            let world = DiscoveryBench::new();
            // Would be used if it were the first to be found.
            world.server.serve_document(ISSUER_METADATA, &metadata(&world.server.origin()));
            world.server.respond_with(place, http_response(status, "", ""));
            let error = world.discover().await.unwrap_err();
            assert!(error.is_transient() && error.to_string().contains(&format!("responded with {status}")), "{error}");
        }
    }
}

#[tokio::test]
async fn configured_endpoints_replace_discovery() {
    let mut world = DiscoveryBench::new();
    world.settings.authorization_url = Some("https://as.example/login".to_owned());
    world.settings.token_url = Some("https://as.example:8443/t/token".to_owned());
    let mut expected = AuthServerMetadata {
        issuer: "https://as.example:8443".to_owned(),
        authorization_endpoint: world.settings.authorization_url.clone(),
        token_endpoint: world.settings.token_url.clone(),
        named: EndpointSource::Owner,
        is_guessed: true,
        ..AuthServerMetadata::default()
    };
    let mut bare = world.description();
    bare["resource"] = world.server.origin().into();
    let (address, origin) = (format!("{}/mcp", world.server.origin()), world.server.origin());
    for (description, resource) in [(world.description(), &address), (bare, &origin), (json!([]), &address)] {
        world.server.serve_document(PATH_METADATA, &description);
        let found = world.discover().await.unwrap();
        assert_eq!((found.resource.as_ref(), found.issuers.len()), (Some(resource), 0));
        assert_eq!(found.server, expected);
    }
    world.settings.issuer = Some("https://as.example/t".to_owned());
    (expected.issuer, expected.is_guessed) = ("https://as.example/t".to_owned(), false);
    assert_eq!(world.discover().await.unwrap().server, expected);
    let nowhere = world.discover_at(Some(format!("{origin}/gone"))).await.unwrap();
    assert_eq!((nowhere.resource, nowhere.server), (Some(address), expected));
    assert_eq!(world.authority.connections(), 0);

    world.settings.token_url = Some("http://as.example/token".to_owned());
    assert!(matches!(world.discover().await, Err(LoginError::Unsafe(_))));
}

#[tokio::test]
async fn t43_configured_endpoints_do_not_skip_resource_check() {
    let mut world = DiscoveryBench::new();
    world.settings.authorization_url = Some("https://as.example/login".to_owned());
    world.settings.token_url = Some("https://as.example/token".to_owned());
    let mut other = world.description();
    other["resource"] = "https://evil.example".into();
    world.server.serve_document(PATH_METADATA, &other);
    assert!(matches!(world.discover().await, Err(LoginError::WrongResource { .. })));
    world.server.respond_with(PATH_METADATA, http_response("503 Service Unavailable", "", ""));
    assert!(world.discover().await.unwrap_err().is_transient());
}

#[tokio::test]
async fn t41_login_page_of_another_origin_needs_a_token_url() {
    let mut world = DiscoveryBench::described();
    let origin = world.authority.origin();
    for elsewhere in ["https://as.example/x".to_owned(), origin.replace("127.0.0.1", "localhost")] {
        for on_device in [false, true] {
            world.settings = AuthSettings::default();
            let page = if on_device { &mut world.settings.device_url } else { &mut world.settings.authorization_url };
            *page = Some(elsewhere.clone());
            let error = world.discover().await.unwrap_err();
            assert!(matches!(&error, LoginError::Unsafe(told) if told.contains("`oauth.token_url`")), "{error}");
            world.settings.token_url = Some("https://tokens.example/".to_owned());
            assert_eq!(world.discover().await.unwrap().server.named, EndpointSource::Owner);
        }
    }
    world.settings = AuthSettings::default();
    world.settings.authorization_url = Some(format!("{origin}/other"));
    assert_eq!(world.discover().await.unwrap().server.authorization_endpoint, Some(format!("{origin}/other")));
    // Irrelevant without a login page.
    world.settings.authorization_url = Some("https://as.example/x".to_owned());
    world.settings.grant = TokenGrant::ClientSecret;
    assert!(world.discover().await.is_ok());
}

#[tokio::test]
async fn unavailable_issuer_is_not_skipped() {
    let world = DiscoveryBench::described();
    let last = world.authority.origin();
    let first = format!("{last}/t");
    let mut description = world.description();
    description["authorization_servers"] = json!([first, last]);
    // The failure of the first URL is forgotten once the second succeeds.
    world
        .server
        .respond_with(PATH_METADATA, http_response("503 Service Unavailable", "", ""))
        .serve_document(ROOT_METADATA, &description);
    let place = format!("{ISSUER_METADATA}/t");
    world.authority.respond_with(&place, http_response("503 Service Unavailable", "", ""));
    let error = world.discover().await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("/t: responded with 503"), "{error}");
    assert!(!world.authority.request_lines().contains(&format!("GET {ISSUER_METADATA}")));

    world.authority.respond_with(&place, http_response("404 Not Found", "", ""));
    let found = world.discover().await.unwrap();
    assert_eq!((found.server.issuer, found.issuers), (last.clone(), vec![first.clone(), last.clone()]));

    world.authority.serve_document(&place, &metadata(&first));
    let mut owned =
        DiscoveryBench { settings: AuthSettings { issuer: Some(last.clone()), ..AuthSettings::default() }, ..world };
    let found = owned.discover().await.unwrap();
    assert_eq!((found.server.issuer, found.issuers.len()), (last, 0));
    owned.settings.issuer = None;
    assert_eq!(owned.discover().await.unwrap().server.issuer, first);
}

#[tokio::test]
async fn configured_endpoints_override_metadata() {
    let mut world = DiscoveryBench::described();
    world.settings.token_url = Some("https://as.example/token".to_owned());
    world.settings.registration_url = Some("https://as.example/register".to_owned());
    let found = world.discover().await.unwrap().server;
    assert_eq!((found.issuer, found.named), (world.authority.origin(), EndpointSource::Metadata));
    assert_eq!(found.authorization_endpoint, Some(format!("{}/authorize", world.authority.origin())));
    assert_eq!(found.token_endpoint, world.settings.token_url);
    assert_eq!(found.registration_endpoint, world.settings.registration_url);
    // The client credentials grant opens no page.
    world.settings.grant = TokenGrant::ClientSecret;
    assert_eq!(world.discover().await.unwrap().server.named, EndpointSource::Owner);
}
