use serde_json::json;
use wharf_testkit::transport_faults::{FaultCount, Http1Request, black_hole};

use super::static_site::{StaticSite, http_response};
use super::*;

/// A public documentation address. Never dialled.
const PUBLIC_SERVER: &str = "https://203.0.113.9/mcp";

fn outside(server: &str) -> AuthHttpClient {
    AuthHttpClient::new(&Url::parse(server).unwrap(), NetOptions::default())
}

/// Returns the error of a failing request.
async fn failure(outside: &AuthHttpClient, address: &str, named: UrlSource) -> FetchError {
    outside.get(address, named).await.err().unwrap_or_else(|| panic!("{address} was fetched"))
}

#[tokio::test]
async fn t40_server_urls_to_private_addresses_are_refused() {
    let canary = StaticSite::start();
    let outside = outside(PUBLIC_SERVER);
    let loopback = "127.0.0.1 127.1 127.0.1 127.0.0.1. 127.255.255.254 0177.1 0177.0.0.1 0x7f.1 0x7f.0x0.0x0.0x1 \
        0x7f000001 0X7F000001 017700000001 2130706433 %31%32%37.0.0.1 127。0。0。1 １２７.0.0.1 ①②⑦.0.0.1 0 0x0 0.0.0.0 \
        0.1.2.3 [::1] [0000::0001] [::] [::ffff:127.0.0.1] [::FFFF:7F00:1] [0:0:0:0:0:ffff:127.0.0.1] [::127.0.0.1] \
        localhost LOCALHOST [64:ff9b::7f00:1] [2002:7f00:1::]";
    let elsewhere = "10.0.0.1 012.0.0.1 167772161 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 100.100.100.200 \
        169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 [::ffff:169.254.169.254] \
        [::ffff:a9fe:a9fe] [::ffff:10.0.0.1] [64:ff9b::a9fe:a9fe] [2002:a9fe:a9fe::1] [fe80::1] [fe80::1%25lo] \
        [fc00::1] [fd00:ec2::254] [fec0::1] [ff02::1] 192.0.0.192 192.0.2.1 198.18.0.1 224.0.0.1 240.0.0.1 \
        255.255.255.255 user:pass@10.0.0.1";
    let hosts: Vec<&str> = loopback.split_whitespace().chain(elsewhere.split_whitespace()).collect();
    assert!(hosts.len() >= 60, "{}", hosts.len());
    for host in hosts {
        for scheme in ["http", "https"] {
            let address = format!("{scheme}://{host}:{}/x", canary.port());
            let error = failure(&outside, &address, UrlSource::ByServer).await;
            assert!(!error.may_pass, "{error}");
            let error = outside.post_json(&address, UrlSource::ByServer, &json!({})).await.err().unwrap();
            assert!(!error.may_pass, "{error}");
        }
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test]
async fn t40_cross_origin_redirects_are_not_followed() {
    let (site, canary) = (StaticSite::start(), StaticSite::start());
    let outside = outside(&format!("{}/mcp", site.origin()));
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        for host in
            [canary.origin(), format!("http://localhost:{}", canary.port()), "http://169.254.169.254".to_owned()]
        {
            site.respond_with("/x", http_response(status, &format!("Location: {host}/x\r\n"), ""));
            let error = failure(&outside, &format!("{}/x", site.origin()), UrlSource::ByOwner).await;
            assert!(error.reason.contains("redirect not followed"), "{error}");
        }
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test]
async fn t40_server_urls_are_limited_to_the_servers_network_zone() {
    let site = StaticSite::start();
    let address = format!("{}/x", site.origin());
    site.serve_document("/x", &json!({}));
    for server in
        ["http://10.0.0.1/mcp", "https://[fd00::1]/mcp", "http://169.254.7.7/", "https://192.0.2.1/", PUBLIC_SERVER]
    {
        let outside = outside(server);
        let error = failure(&outside, &address, UrlSource::ByServer).await;
        assert!(
            error.reason.contains("connections to 127.0.0.1 are not allowed") && error.reason.contains("`oauth`"),
            "{server}: {error}"
        );
        assert_eq!(site.connections(), 0, "{server}");
    }
    for server in ["http://127.0.0.1:1/mcp", "http://127.9.9.9/", "https://localhost/mcp", "http://x.localhost/"] {
        assert!(outside(server).get(&address, UrlSource::ByServer).await.is_ok(), "{server}");
    }
    assert!(outside(PUBLIC_SERVER).get(&address, UrlSource::ByOwner).await.is_ok());
}

#[test]
fn t40_dns_name_cannot_resolve_to_loopback_zone() {
    for (addresses, expected) in [
        ("", None),
        ("10.0.0.1", Some(NetworkZone::Private)),
        ("10.0.0.1 fd00::1 192.168.0.1", Some(NetworkZone::Private)),
        ("10.0.0.1 1.1.1.1", None),
        ("1.1.1.1 10.0.0.1", None),
        ("10.0.0.1 127.0.0.1", None),
        ("127.0.0.1", None),
        ("::1 127.0.0.1", None),
        ("fe80::1", None),
        ("169.254.169.254 10.0.0.1", None),
        ("1.1.1.1", None),
    ] {
        let found = zone_of_name(addresses.split_whitespace().map(|address| address.parse().unwrap()));
        assert_eq!(found, expected, "{addresses}");
    }
}

#[tokio::test]
async fn t40_public_name_never_opens_a_local_zone() {
    for (name, expected) in [
        ("wiki", true),
        ("wiki.", true),
        ("mcp.lan", true),
        ("mcp.team.internal.", true),
        ("printer.local", true),
        ("nas.home.arpa", true),
        ("mcp.corp", true),
        ("mcp.intranet", true),
        ("mcp.example.org", false),
        ("internal.example.org", false),
        ("local.com", false),
        ("notlocal", true),
        ("mcp.notlocal", false),
        ("arpa.home", false),
    ] {
        assert_eq!(is_local_name(name), expected, "{name}");
    }
    // The name is not even resolved.
    assert!(matches!(outside("https://mcp.example.invalid/").0.zone().await, Ok(None)));
}

#[tokio::test]
async fn probe_reads_the_metadata_url_from_the_challenge() {
    let site = StaticSite::start();
    let challenge = "WWW-Authenticate: Bearer scope=x, DPoP resource_metadata=\"https://a/b\"\r\n";
    site.respond_with("/mcp", http_response("401 Unauthorized", challenge, ""));
    let found = outside(&format!("{}/mcp", site.origin())).probe_challenge().await.unwrap();
    assert_eq!(found.resource_metadata.as_deref(), Some("https://a/b"));
}

#[tokio::test]
async fn client_certificate_is_sent_to_configured_urls_only() {
    let (server, other) = (StaticSite::start(), StaticSite::start());
    let mut options = NetOptions::default();
    options.client_certificate = Some("/nowhere/at/all.pem".into());
    let outside = AuthHttpClient::new(&Url::parse(&server.origin()).unwrap(), options);
    let there = |site: &StaticSite| format!("{}/x", site.origin());
    assert!(outside.get(&there(&other), UrlSource::ByServer).await.is_ok());
    // The read error shows that the certificate would be used.
    for (site, named) in [(&other, UrlSource::ByOwner), (&server, UrlSource::ByServer)] {
        let error = failure(&outside, &there(site), named).await;
        assert!(error.reason.contains("cannot read `/nowhere/at/all.pem`: "), "{error}");
    }
}

#[tokio::test]
async fn t49_oversized_and_deep_documents_are_errors() {
    let site = StaticSite::start();
    let outside = outside(&site.origin());
    let deep = format!("{}1{}", "[".repeat(33), "]".repeat(33));
    let scopes = format!("[{}0]", "0,".repeat(100_000));
    let huge = format!("\"{}\"", "x".repeat(MAX_BODY_BYTES));
    for (name, body, expected) in [
        ("deep", deep, "the response is nested deeper than 32 levels"),
        ("many", scopes, "more than 20000 values"),
        ("huge", huge, "exceeds 1048576 bytes"),
        ("bottomless", "[".repeat(1_000_000), "the response is nested deeper than 32 levels"),
    ] {
        site.respond_with("/x", http_response("200 OK", "", &body));
        let error = failure(&outside, &format!("{}/x", site.origin()), UrlSource::ByOwner).await;
        assert!(error.reason.ends_with(expected) && !error.may_pass, "{name}: {error}");
    }
    // Declares a gigabyte. Only the bytes read are counted.
    site.respond_with(
        "/x",
        format!("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n{}", " ".repeat(2 << 20)).into(),
    );
    let error = failure(&outside, &format!("{}/x", site.origin()), UrlSource::ByOwner).await;
    assert!(error.reason.ends_with("exceeds 1048576 bytes"), "{error}");
}

#[tokio::test]
async fn non_json_body_is_none() {
    let site = StaticSite::start();
    let outside = outside(&site.origin());
    let page = format!("<html>{}</html>", "{[,".repeat(50_000));
    for (body, expected) in
        [("{\"a\":1}", Some(json!({"a": 1}))), ("", None), ("{", None), ("7", Some(json!(7))), (&page, None)]
    {
        site.respond_with("/x", http_response("200 OK", "", body));
        let fetched = outside.get(&format!("{}/x", site.origin()), UrlSource::ByOwner).await.ok().unwrap();
        assert_eq!((fetched.status, fetched.json), (StatusCode::OK, expected));
    }
}

#[tokio::test(start_paused = true)]
async fn silent_server_times_out_after_ten_seconds() {
    let silent = black_hole(FaultCount::Always).unwrap();
    let address = format!("http://{}/x", silent.address());
    let begun = tokio::time::Instant::now();
    let error = failure(&outside(&address), &address, UrlSource::ByOwner).await;
    assert!(error.may_pass, "{error}");
    assert!(begun.elapsed() >= PATIENCE && begun.elapsed() < PATIENCE * 2, "{error} after {:?}", begun.elapsed());
}

#[tokio::test]
async fn t50_errors_contain_neither_body_nor_query() {
    let site = StaticSite::start();
    let outside = outside(&site.origin());
    site.respond_with("/x?code=hush", http_response("200 OK", "Transfer-Encoding: chunked\r\n", "hush"));
    let error = failure(&outside, &format!("{}/x?code=hush", site.origin()), UrlSource::ByOwner).await;
    assert!(!error.reason.contains("hush"), "{error}");
    assert!(error.reason.starts_with(&format!("{}/x?code=***: ", site.origin())), "{error}");
}

#[tokio::test]
async fn requests_have_expected_headers_and_bodies() {
    let site = StaticSite::start();
    let (outside, address) = (outside(&site.origin()), format!("{}/x", site.origin()));
    assert_eq!(outside.get(&address, UrlSource::ByOwner).await.ok().unwrap().status, StatusCode::NOT_FOUND);
    let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static("Basic eDp5"))]);
    let fields = [("grant_type", "a b"), ("code", "x&y=z+ü")];
    outside.post_form(&address, UrlSource::ByOwner, &fields, headers).await.ok().unwrap();
    outside.post_json(&address, UrlSource::ByOwner, &json!({"a": [1]})).await.ok().unwrap();
    let asked = site.requests();
    let heads: [&[&str]; 3] = [
        &["GET /x HTTP/1.1", "accept: application/json", "mcp-protocol-version: 2025-11-25", "user-agent: wharf/"],
        &["POST /x HTTP/1.1", "content-type: application/x-www-form-urlencoded", "authorization: Basic eDp5"],
        &["POST /x HTTP/1.1", "content-type: application/json", "accept: application/json"],
    ];
    for (asked, expected) in asked.iter().zip(heads) {
        for line in expected {
            assert!(asked.head.contains(line), "{line} in {}", asked.head);
        }
    }
    let bodies: Vec<String> = asked.iter().map(Http1Request::text).collect();
    assert_eq!(bodies, ["", "grant_type=a+b&code=x%26y%3Dz%2B%C3%BC", r#"{"a":[1]}"#]);
}

#[tokio::test]
async fn same_origin_redirect_is_followed_for_get_only() {
    let site = StaticSite::start();
    let (outside, address) = (outside(&site.origin()), format!("{}/x", site.origin()));
    site.respond_with("/x", http_response("307 Elsewhere", "Location: /y\r\n", ""))
        .serve_document("/y", &json!({"a": 1}));
    assert_eq!(outside.get(&address, UrlSource::ByServer).await.ok().unwrap().json, Some(json!({"a": 1})));
    let error =
        outside.post_form(&address, UrlSource::ByServer, &[("code", "x")], HeaderMap::new()).await.err().unwrap();
    assert!(error.reason.contains("redirect not followed"), "{error}");
    assert_eq!(site.request_lines(), ["GET /x", "GET /y", "POST /x"]);
}

#[test]
fn configured_urls_are_attributed_to_the_owner() {
    let (token_url, device_url) = (Some("https://a/token".to_owned()), Some("https://a/device".to_owned()));
    let settings = AuthSettings { token_url, device_url, ..AuthSettings::default() };
    for (address, expected) in [
        ("https://a/token", UrlSource::ByOwner),
        ("https://a/device", UrlSource::ByOwner),
        ("https://a/Token", UrlSource::ByServer),
        ("https://a/other", UrlSource::ByServer),
    ] {
        assert_eq!(UrlSource::from_settings(address, &settings), expected, "{address}");
    }
}
