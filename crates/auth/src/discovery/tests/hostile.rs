//! Tests: invalid and malicious metadata.

use super::*;

#[tokio::test]
async fn t42_missing_s256_support_prevents_login() {
    let world = DiscoveryBench::described();
    for methods in [json!(null), json!([]), json!(["plain"]), json!("S256"), json!({"S256": true}), json!(["s256"])] {
        let mut document = metadata(&world.authority.origin());
        document["code_challenge_methods_supported"] = methods.clone();
        world.authority.serve_document(ISSUER_METADATA, &document);
        let error = world.discover().await.unwrap_err();
        assert!(matches!(&error, LoginError::Unsafe(told) if told.contains("S256")), "{methods}: {error:?}");
    }
}

#[tokio::test]
async fn pkce_is_not_required_without_a_code() {
    let mut world = DiscoveryBench::described();
    let mut document = metadata(&world.authority.origin());
    document["code_challenge_methods_supported"] = json!(null);
    world.authority.serve_document(ISSUER_METADATA, &document);
    world.settings.grant = TokenGrant::ClientSecret;
    assert!(!world.discover().await.unwrap().server.takes_s256);
}

#[tokio::test]
async fn t39_unsafe_endpoint_urls_are_refused() {
    let world = DiscoveryBench::described();
    for place in ["authorization_endpoint", "token_endpoint"] {
        for address in [
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "http://as.example/x",
            "https://u:p@as.example/x",
            "https://as.example/x#y",
            "https://as.example/\u{202e}x",
            "--upload-pack=x",
        ] {
            let mut document = metadata(&world.authority.origin());
            document[place] = address.into();
            world.authority.serve_document(ISSUER_METADATA, &document);
            let error = world.discover().await.unwrap_err();
            assert!(matches!(error, LoginError::Unsafe(_)), "{place} {address}: {error:?}");
            assert!(!error.to_string().contains('\u{202e}'), "{error}");
        }
    }
}

#[tokio::test]
async fn t40_metadata_urls_to_private_addresses_are_refused() {
    let canary = StaticSite::start();
    let port = canary.port();
    for host in ["10.0.0.1", "169.254.169.254", "[fd00:ec2::254]", "[::ffff:192.168.0.1]", "0.0.0.0", "100.64.0.1"] {
        let issuer = format!("https://{host}:{port}");
        let world = DiscoveryBench::described();
        let mut description = world.description();
        description["authorization_servers"] = json!([issuer]);
        world.server.serve_document(PATH_METADATA, &description);
        let told = world.error_message().await;
        assert_eq!(told.matches("are not allowed").count(), 2, "{host}: {told}");
        let error = world.discover_at(Some(format!("{issuer}/x"))).await.unwrap_err();
        assert!(error.to_string().contains("are not allowed") && !error.is_transient(), "{host}: {error}");
    }
    assert_eq!(canary.connections(), 0);
}

/// Discovers with this response as the server's metadata.
async fn told_of_description(bytes: Vec<u8>) -> Result<DiscoveryResult, LoginError> {
    let world = DiscoveryBench::described();
    world.server.respond_with(PATH_METADATA, bytes);
    world.discover_at(Some(format!("{}{PATH_METADATA}", world.server.origin()))).await
}

async fn told_of_metadata(bytes: Vec<u8>) -> String {
    let world = DiscoveryBench::described();
    world.authority.respond_with(ISSUER_METADATA, bytes);
    world.error_message().await
}

#[tokio::test]
async fn o07_discovery_errors_describe_the_response() {
    let document = |value: Value| http_response("200 OK", "", &value.to_string());
    for (bytes, expected) in [
        (http_response("404 Not Found", "", ""), ": responded with 404 Not Found"),
        (http_response("401 Unauthorized", "", "{}"), ": responded with 401 Unauthorized"),
        (http_response("500 Internal Server Error", "", "{}"), ": responded with 500 Internal Server Error"),
        (http_response("201 Created", "", "{}"), ": responded with 201 Created"),
        (http_response("200 OK", "Content-Type: text/html\r\n", "<html>hush</html>"), ": not JSON)"),
        (http_response("200 OK", "", ""), ": not JSON)"),
        (http_response("200 OK", "", "[]"), ": not a JSON object"),
        (
            http_response("302 Found", "Location: /login\r\n", ""),
            ": redirect not followed (302 Found to http://127.0.0.1:…/login)",
        ),
        (document(json!({})), ": has no `resource`"),
        (document(json!({"resource": 7})), ": has no `resource`"),
    ] {
        let told = told_of_description(bytes).await.unwrap_err().to_string();
        // `…` stands for the port.
        assert!(expected.split('…').all(|part| told.contains(part)), "{expected}: {told}");
        assert!(!told.contains("hush"), "{told}");
    }
    for (bytes, expected) in [
        (http_response("200 OK", "", "<html>hush</html>"), "oauth-authorization-server: not JSON; "),
        (http_response("200 OK", "", "\"hush\""), "oauth-authorization-server: not a JSON object; "),
        (
            http_response("307 Temporary", "Location: https://evil.example/x\r\n", ""),
            "redirect not followed (307 Temporary Redirect to https://evil.example/x)",
        ),
        (document(json!({"issuer": ["hush"]})), ": has no `issuer`; "),
    ] {
        let told = told_of_metadata(bytes).await;
        assert!(told.contains(expected) && !told.contains("hush"), "{expected}: {told}");
    }
}

#[tokio::test]
async fn o07_missing_endpoints_are_named() {
    let world = DiscoveryBench::described();
    for (place, value) in [
        ("authorization_endpoint", json!(null)),
        ("authorization_endpoint", json!("")),
        ("token_endpoint", json!(null)),
        ("token_endpoint", json!(["https://as.example/token"])),
        ("token_endpoint", json!(format!("https://as.example/{}", "x".repeat(5_000)))),
    ] {
        let mut document = metadata(&world.authority.origin());
        document[place] = value;
        world.authority.serve_document(ISSUER_METADATA, &document);
        let told = world.error_message().await;
        assert!(told.ends_with(&format!("the metadata of `{}` have no `{place}`", world.authority.origin())), "{told}");
    }
}

#[tokio::test]
async fn t49_hostile_documents_yield_short_errors() {
    let deep = |depth: usize| format!("{{\"resource\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
    let flood = format!("{{\"scopes_supported\":[{}\"s\"]}}", "\"s\",".repeat(100_000));
    let huge = format!("{{\"resource\":\"{}\"}}", "x".repeat(2 << 20));
    for body in [deep(32), deep(100), deep(100_000), flood, huge, "{".repeat(500_000), "\u{0}".repeat(1_000)] {
        let error = told_of_description(http_response("200 OK", "", &body)).await.unwrap_err();
        assert!(error.to_string().len() < 1_000, "{error}");
    }
    for member in [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!({}),
        json!([]),
        json!([[]]),
        json!([null, 1, {}]),
        json!("x".repeat(100_000)),
        json!(["x".repeat(100_000)]),
    ] {
        for name in ["resource", "authorization_servers"] {
            let world = DiscoveryBench::described();
            let mut description = world.description();
            description[name] = member.clone();
            world.server.serve_document(PATH_METADATA, &description);
            let pointer = format!("{}{PATH_METADATA}", world.server.origin());
            let error = world.discover_at(Some(pointer)).await.unwrap_err();
            assert!(error.to_string().len() < 1_000, "{name} {error}");
        }
    }
}

#[tokio::test]
async fn t49_lists_are_truncated_and_non_strings_skipped() {
    let world = DiscoveryBench::described();
    let many: Vec<String> = (0..10_000).map(|number| format!("s{number}")).collect();
    let mut description = world.description();
    description["scopes_supported"] = json!(many);
    description["dpop_bound_access_tokens_required"] = "yes".into();
    world.server.serve_document(PATH_METADATA, &description);
    let mut document = metadata(&world.authority.origin());
    document["scopes_supported"] = json!([1, "a", null, ["b"], "x".repeat(1_000), "c"]);
    document["token_endpoint_auth_methods_supported"] = "none".into();
    document["client_id_metadata_document_supported"] = 1.into();
    world.authority.serve_document(ISSUER_METADATA, &document);
    let found = world.discover().await.unwrap();
    assert_eq!((found.scopes.len(), found.needs_dpop), (200, false));
    assert_eq!(found.server.scopes, ["a", "c"]);
    assert_eq!((found.server.proofs.len(), found.server.takes_documents), (0, false));
}
