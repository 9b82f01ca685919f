//! Proxies: the configured one is used, and no other (H31).

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use wharf_net::{Net, NetOpenError, NetOptions, SendError, StatusCode};
use wharf_spec::Secret;
use wharf_testkit::transport_faults::{
    ConnectProxy, Endpoint, FaultCount, ProxyBehaviour, Refused, TestCa, TlsFault, serve_plain, serve_tls,
};

use crate::files::File;
use crate::{BRIEF, Outcome, exchange, hurried, open, open_with, plain, secure};

const PASSWORD: &str = "hunter2";
/// `user:hunter2`.
const AUTHORIZATION: &str = "Basic dXNlcjpodW50ZXIy";

async fn through(proxy: impl std::fmt::Display, authority: &TestCa) -> Net {
    let trusted = File::holding(&authority.pem());
    let mut options = hurried();
    options.proxy = Some(Secret::new(proxy.to_string()));
    options.extra_ca = vec![trusted.path()];
    open_with(options).await
}

/// A healthy server of each kind, and its URL. Plain ones are told to the proxy, secure ones reached through a tunnel.
fn servers(authority: &TestCa) -> [(Endpoint, String); 2] {
    let (open, closed) = (serve_plain().unwrap(), serve_tls(authority, TlsFault::None, FaultCount::Always).unwrap());
    let (open_url, closed_url) = (plain(open.address()), secure(closed.address()));
    [(open, open_url), (closed, closed_url)]
}

#[tokio::test(flavor = "multi_thread")]
async fn h31_the_configured_proxy_is_used() {
    let authority = TestCa::new();
    for (server, url) in servers(&authority) {
        let proxy = ConnectProxy::start(ProxyBehaviour::Works(server.address())).unwrap();
        let net = through(format!("http://{}", proxy.address()), &authority).await;
        assert!(exchange(&net, &url).await.is_healthy("hello"), "{url}");
        let asked = proxy.requests();
        assert_eq!((asked.len(), server.requests()), (1, 1), "{url}");
        let expected =
            if url.starts_with("https") { url.replace("https://", "CONNECT ") } else { format!("POST {url}") };
        assert_eq!(asked[0].line, expected.trim_end_matches(if url.starts_with("https") { "/mcp" } else { "" }));
        assert_eq!(asked[0].authorization, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h31_proxy_resolves_host_names() {
    let authority = TestCa::new();
    let server = serve_plain().unwrap();
    let proxy = ConnectProxy::start(ProxyBehaviour::Works(server.address())).unwrap();
    let net = through(format!("http://{}", proxy.address()), &authority).await;
    assert!(exchange(&net, "http://no-such-server.invalid/mcp").await.is_healthy("hello"));
}

#[tokio::test(flavor = "multi_thread")]
async fn h31_credentials_go_to_the_proxy_only() {
    let authority = TestCa::new();
    for (server, url) in servers(&authority) {
        let proxy = ConnectProxy::start(ProxyBehaviour::Demands(AUTHORIZATION.to_owned(), server.address())).unwrap();
        let net = through(format!("http://user:{PASSWORD}@{}", proxy.address()), &authority).await;
        assert!(exchange(&net, &url).await.is_healthy("hello"), "{url}");
        assert_eq!(proxy.requests()[0].authorization.as_deref(), Some(AUTHORIZATION), "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h31_proxy_errors_differ_from_server_errors() {
    let authority = TestCa::new();
    for (manner, status, said) in [
        (ProxyBehaviour::Refuses, Some(StatusCode::PROXY_AUTHENTICATION_REQUIRED), "authorization"),
        (ProxyBehaviour::BadGateway, Some(StatusCode::BAD_GATEWAY), "proxy"),
        (ProxyBehaviour::Garbage, None, "proxy"),
    ] {
        for (server, url) in servers(&authority) {
            let proxy = ConnectProxy::start(manner.clone()).unwrap();
            let net = through(format!("http://user:{PASSWORD}@{}", proxy.address()), &authority).await;
            let outcome = exchange(&net, &url).await;
            assert_eq!(
                (server.connections(), proxy.requests().len()),
                (0, 1),
                "{manner:?} {url}: gone around the proxy"
            );
            assert!(!format!("{outcome:?}").contains(PASSWORD), "{outcome:?}");
            match outcome {
                // To a plain server the proxy's answer looks like the server's own.
                Outcome::Answered(told, _) if url.starts_with("http:") => assert_eq!(Some(told), status),
                Outcome::Unsent(SendError::Broken(_)) if url.starts_with("http:") => assert_eq!(status, None),
                Outcome::Unsent(error) => {
                    assert!(error.is_certainly_unsent(), "{manner:?} {url}: {error:?}");
                    assert!(error.to_string().contains(said), "{manner:?} {url}: {error}");
                }
                other => panic!("{manner:?} {url}: {other:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h31_unopened_tunnel_hits_the_connect_timeout() {
    let authority = TestCa::new();
    let server = serve_tls(&authority, TlsFault::None, FaultCount::Always).unwrap();
    let proxy = ConnectProxy::start(ProxyBehaviour::Silent).unwrap();
    let net = through(format!("http://user:{PASSWORD}@{}", proxy.address()), &authority).await;
    let error = exchange(&net, &secure(server.address())).await.unsent();
    assert_eq!(error, SendError::Slow(BRIEF));
    assert_eq!(server.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn h31_unreachable_proxy_is_not_bypassed() {
    let authority = TestCa::new();
    let nobody = Refused::bind().unwrap();
    for (server, url) in servers(&authority) {
        for scheme in ["http", "https"] {
            let net = through(format!("{scheme}://user:{PASSWORD}@{}", nobody.address()), &authority).await;
            let error = exchange(&net, &url).await.unsent();
            assert!(matches!(error, SendError::Refused(_)) && error.is_certainly_unsent(), "{url}: {error:?}");
            assert!(error.to_string().contains("refused"), "{url}: {error}");
            assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error:?}");
        }
        assert_eq!(server.connections(), 0, "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h31_invalid_proxy_url_is_rejected_without_showing_it() {
    for text in
        [format!("http://user:{PASSWORD}@"), format!("user {PASSWORD}"), format!("gopher://user:{PASSWORD}@host")]
    {
        let mut options = NetOptions::default();
        options.proxy = Some(Secret::new(text.clone()));
        let refused = Net::open(&options).await.err();
        assert!(matches!(refused, Some(NetOpenError::Proxy)), "{text}: {refused:?}");
        assert!(!format!("{options:?} {refused:?}").contains(PASSWORD));
    }
}

#[test]
fn h31_proxy_environment_variables_are_ignored() {
    let (server, proxy) = (serve_plain().unwrap(), ConnectProxy::start(ProxyBehaviour::BadGateway).unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "proxies::child_sends_request_to_url_from_stdin", "--include-ignored", "--nocapture"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        child.env(name, format!("http://{}", proxy.address()));
        child.env(name.to_ascii_lowercase(), format!("http://{}", proxy.address()));
    }
    let mut child = child.env_remove("REQUEST_METHOD").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(plain(server.address()).as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!((server.requests(), proxy.requests()), (1, Vec::new()));
}

/// The child of the test above: another process, whose environment may be anything.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "is run by another test, which says where to send to"]
async fn child_sends_request_to_url_from_stdin() {
    let mut url = String::new();
    std::io::stdin().read_to_string(&mut url).unwrap();
    if !url.is_empty() {
        assert!(exchange(&open().await, &url).await.is_healthy("hello"));
    }
}
