//! Answers that send a request on: H24 and T43.

use std::io::Write;
use std::net::TcpListener;

use wharf_net::{RedirectPolicy, SendError, StatusCode};
use wharf_testkit::transport_faults::{Endpoint, TestCa, serve_plain};

use crate::encryption::trusting;
use crate::served::{answer, answering, read_request, saying_securely};
use crate::{Outcome, call, exchange, exchange_request, open, plain, secure};

/// A server that sends everything on with this status and `Location`, until it is asked for `/end`.
fn sending_on(status: u16, location: &str) -> Endpoint {
    let location = location.to_owned();
    answering(move |request| match request.path() {
        "/end" => answer(&format!("Content-Length: {}\r\n", request.body.len()), &request.body),
        _ => elsewhere(status, &location),
    })
}

fn elsewhere(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn h24_only_method_preserving_redirects_are_followed() {
    for (status, followed) in [(301, false), (302, false), (303, false), (307, true), (308, true)] {
        let server = sending_on(status, "/end");
        let request = call(&plain(server.address()), "hello");
        let sent = request.body.clone();
        let outcome = exchange_request(&open().await, request).await;
        if followed {
            assert_eq!(outcome, Outcome::Answered(StatusCode::OK, sent), "{status}");
        } else {
            let to = Some(format!("http://{}/end", server.address()));
            let expected = SendError::Redirected { status: StatusCode::from_u16(status).unwrap(), to };
            assert_eq!(outcome, Outcome::Unsent(expected), "{status}");
        }
        assert_eq!(server.requests(), if followed { 2 } else { 1 }, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h24_refusing_policy_follows_no_redirect() {
    let server = sending_on(307, "/end");
    let mut request = call(&plain(server.address()), "hello");
    request.redirects = RedirectPolicy::Refused;
    let error = exchange_request(&open().await, request).await.unsent();
    assert!(matches!(error, SendError::Redirected { .. }) && !error.is_certainly_unsent(), "{error:?}");
    assert_eq!(server.requests(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn h24_cross_origin_redirect_is_not_followed() {
    let canary = serve_plain().unwrap();
    let server = serve_plain().unwrap();
    let (canary_port, own_port) = (canary.address().port(), server.address().port());
    drop(server);
    for location in [
        format!("http://127.0.0.1:{canary_port}/end"),
        format!("//127.0.0.1:{canary_port}/end"),
        format!("http://localhost:{own_port}/end"),
        format!("https://127.0.0.1:{own_port}/end"),
        format!("http://127.0.0.1:{own_port}@127.0.0.1:{canary_port}/end"),
        format!("\\\\127.0.0.1:{canary_port}/end"),
        "file:///etc/passwd".to_owned(),
        "http://".to_owned(),
        "http://[::1".to_owned(),
    ] {
        let server = sending_on(307, &location);
        let error = exchange(&open().await, &plain(server.address())).await.unsent();
        assert!(matches!(error, SendError::Redirected { .. }), "{location}: {error:?}");
        assert!(!error.is_certainly_unsent(), "{location}: the server had it");
        assert_eq!(server.requests(), 1, "{location}");
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn h24_https_to_http_redirect_is_not_followed() {
    let authority = TestCa::new();
    let canary = serve_plain().unwrap();
    let server = saying_securely(&authority, elsewhere(308, &format!("http://localhost:{}/", canary.address().port())));
    let error = exchange(&trusting(&authority, None).await, &secure(server.address())).await.unsent();
    assert!(matches!(error, SendError::Redirected { .. }), "{error:?}");
    assert_eq!((server.requests(), canary.connections()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn h24_redirects_are_limited_to_five() {
    for (places, arrives) in [(5, true), (6, false)] {
        let server = answering(move |request| match request.path().trim_start_matches("/mcp").parse::<u32>() {
            Ok(place) if place == places => answer("Content-Length: 2\r\n", b"{}"),
            place => elsewhere(307, &format!("/mcp{}", place.unwrap_or(0) + 1)),
        });
        let outcome = exchange(&open().await, &plain(server.address())).await;
        match arrives {
            true => assert!(matches!(outcome, Outcome::Answered(StatusCode::OK, _)), "{outcome:?}"),
            false => assert_eq!(outcome, Outcome::Unsent(SendError::RedirectLoop)),
        }
        assert_eq!(server.requests(), 6);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h24_redirected_request_is_not_certainly_unsent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = plain(listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // From here on everybody is refused.
        drop(listener);
        let request = read_request(&mut stream).unwrap();
        let answer = "HTTP/1.1 307 Elsewhere\r\nLocation: /end\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(answer.as_bytes()).unwrap();
        request.is_some()
    });
    let error = exchange(&open().await, &url).await.unsent();
    assert!(server.join().unwrap(), "the server has not seen it");
    assert!(error.to_string().contains("refused") && !error.is_certainly_unsent(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn h24_redirect_target_is_escaped_and_truncated() {
    let server = sending_on(302, &format!("http://elsewhere.example/\u{202e}{}", "x".repeat(5000)));
    let error = exchange(&open().await, &plain(server.address())).await.unsent();
    assert!(matches!(error, SendError::Redirected { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.len() < 600 && !text.contains('\u{202e}'), "{text}");
}
