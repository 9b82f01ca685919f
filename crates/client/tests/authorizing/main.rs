//! Servers that want to know who asks: what they are shown, and what their turning us away does to calls, streams and
//! connections.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod site;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use wharf_client::{AuthRecovery, CallError, ConnectCause, Connection, DisconnectCause, RequestOptions, connect_http};
use wharf_spec::{Fingerprint, HeadersSource, HttpTransport, LaunchCheck, LaunchRefusal, Secret};
use wharf_testkit::oracle::poll_until;
use wharf_wire::{Era, RawJson};

use site::{Act, Asked, Site, TOKEN, Who, options};

/// Long enough for anything that is going to happen.
const SOON: Duration = Duration::from_secs(10);

async fn call(connection: &Connection) -> Result<(), CallError> {
    connection.call_tool("note", &RawJson::empty_object(), RequestOptions::default()).await.map(drop)
}

fn refuse(status: u16) -> Act {
    Act::Refuse(status, String::new())
}

fn is_call(asked: &Asked) -> bool {
    asked.method == "tools/call"
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_carries_the_token() {
    let site = Site::start(Era::Handshake, |_| Act::Serve);
    let connection = site.connect(&Who::renewing(0)).await;
    call(&connection).await.unwrap();
    connection.close().await;
    let seen = site.seen();
    for verb in ["POST", "GET", "DELETE"] {
        assert!(seen.iter().any(|asked| asked.verb == verb), "no {verb}: {seen:?}");
    }
    assert!(seen.iter().all(|asked| asked.token == Some(0)), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn configured_authorization_is_not_overridden() {
    let site = Site::start(Era::Stateless, |_| Act::Serve);
    let mut by_header = site.spec();
    by_header.headers.push(("authorization".to_owned(), Secret::new("Bearer of-the-owner")));
    let mut by_address = site.spec();
    by_address.url.set_username("owner").unwrap();
    for (spec, expected) in [(by_header, "Bearer of-the-owner"), (by_address, "Basic b3duZXI6")] {
        connect_http(&spec, options(&Who::renewing(0))).await.unwrap();
        assert_eq!(site.seen().last().unwrap().authorization.as_deref(), Some(expected));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h05_rejected_fresh_token_fails_the_call_only() {
    let site = Site::start(Era::Stateless, |asked| if is_call(asked) { refuse(401) } else { Act::Serve });
    let who = Who::renewing(1);
    let connection = site.connect(&who).await;
    let error = call(&connection).await.unwrap_err();
    assert!(error.needs_login() && !error.is_retryable(), "{error:?}");
    assert_eq!(error.to_string(), "server requires a login (HTTP 401): the login has ended");
    assert_eq!((site.tokens("POST", "tools/call"), who.renewed()), (vec![Some(0), Some(1)], 1));
    assert!(!connection.is_gone(), "others are under way on it");
}

#[tokio::test(flavor = "multi_thread")]
async fn h33_concurrent_401s_renew_the_token_once() {
    let site = Site::start(Era::Stateless, |asked| match asked.token {
        Some(0) if is_call(asked) => refuse(401),
        _ => Act::Serve,
    });
    let who = Who::renewing(1);
    let connection = Arc::new(site.connect(&who).await);
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let connection = connection.clone();
            tokio::spawn(async move { call(&connection).await })
        })
        .collect();
    for called in calls {
        called.await.unwrap().unwrap();
    }
    let made = site.tokens("POST", "tools/call");
    assert_eq!((who.renewed(), made.iter().filter(|token| **token == Some(1)).count()), (1, 100));
}

#[tokio::test(flavor = "multi_thread")]
async fn auth_recovery_decides_whether_a_call_is_retryable() {
    for (status, remedy, retryable, login, scope) in [
        (401, AuthRecovery::Login, false, true, None),
        (401, AuthRecovery::Reading, false, true, None),
        (401, AuthRecovery::Waiting, true, false, None),
        (403, AuthRecovery::Scope("files:write".to_owned()), false, false, Some("files:write")),
        (403, AuthRecovery::Reading, false, false, None),
    ] {
        let site = Site::start(Era::Stateless, move |asked| if is_call(asked) { refuse(status) } else { Act::Serve });
        let connection = site.connect(&Who::helpless(remedy.clone())).await;
        let error = call(&connection).await.unwrap_err();
        let found = (error.is_retryable(), error.needs_login(), error.needs_scope());
        assert_eq!(found, (retryable, login, scope), "{status} {remedy:?}: {error:?}");
        assert_eq!(site.tokens("POST", "tools/call").len(), 1, "{status} {remedy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_credentials_send_no_request() {
    for (remedy, retryable) in [(AuthRecovery::Login, false), (AuthRecovery::Waiting, true)] {
        let site = Site::start(Era::Stateless, |_| Act::Serve);
        let who = Who::renewing(0);
        let connection = site.connect(&who).await;
        *who.missing.lock().unwrap() = Some(remedy.clone());
        let error = call(&connection).await.unwrap_err();
        assert_eq!((error.is_retryable(), error.needs_login()), (retryable, !retryable), "{error:?}");
        let refused = connect_http(&site.spec(), options(&who)).await.err().unwrap().cause;
        assert_eq!((refused.is_retryable(), refused.needs_login()), (retryable, !retryable), "{refused:?}");
        assert_eq!(site.endpoint.requests(), 1, "{remedy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_error_has_auth_recovery_on_every_transport() {
    for form in [HttpTransport::Automatic, HttpTransport::Streamable, HttpTransport::Sse] {
        for (remedy, retryable, login) in [
            (AuthRecovery::Login, false, true),
            (AuthRecovery::Waiting, true, false),
            (AuthRecovery::Scope("a".to_owned()), false, false),
        ] {
            let site = Site::start(Era::Stateless, |_| refuse(401));
            let mut spec = site.spec();
            spec.form = form;
            let cause = connect_http(&spec, options(&Who::helpless(remedy.clone()))).await.err().unwrap().cause;
            assert_eq!((cause.is_retryable(), cause.needs_login()), (retryable, login), "{form:?} {cause:?}");
            assert_eq!(cause.not_authorized().unwrap().remedy, remedy, "{form:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t50_token_echoed_by_server_is_redacted() {
    let echo = |asked: &Asked| Act::Refuse(400, format!("you sent {}", asked.authorization.as_deref().unwrap_or("")));
    let site = Site::start(Era::Stateless, move |asked| match asked.token {
        Some(0) if is_call(asked) => refuse(401),
        _ if is_call(asked) => echo(asked),
        _ => Act::Serve,
    });
    let error = call(&site.connect(&Who::renewing(1)).await).await.unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(told.contains("you sent Bearer ***") && !told.contains(TOKEN), "{told}");
    let site = Site::start(Era::Stateless, move |asked| echo(asked));
    let error = connect_http(&site.spec(), options(&Who::renewing(0))).await.err().unwrap();
    let told = format!("{error} {error:?}");
    assert!(told.contains("***") && !told.contains(TOKEN), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn o15_rejected_stream_is_reopened_with_renewed_token() {
    let streams = AtomicU64::new(0);
    // The token ends with the first stream.
    let site = Site::start(Era::Handshake, move |asked| match (asked.verb.as_str(), asked.token) {
        ("GET", Some(0)) if streams.fetch_add(1, Ordering::SeqCst) > 0 => refuse(401),
        ("GET", Some(0)) => Act::Stream(": nothing to say\n\n"),
        _ => Act::Serve,
    });
    let who = Who::renewing(1);
    let connection = site.connect(&who).await;
    assert!(poll_until(SOON, || site.tokens("GET", "").contains(&Some(1))), "{:?}", site.seen());
    assert_eq!((site.tokens("GET", ""), who.renewed()), (vec![Some(0), Some(0), Some(1)], 1));
    assert!(!connection.is_gone());
}

#[tokio::test(flavor = "multi_thread")]
async fn o15_stream_that_needs_login_ends_the_connection() {
    let streams = AtomicU64::new(0);
    let site = Site::start(Era::Handshake, move |asked| match asked.verb.as_str() {
        "GET" if streams.fetch_add(1, Ordering::SeqCst) > 0 => refuse(401),
        "GET" => Act::Stream(": nothing to say\n\n"),
        _ => Act::Serve,
    });
    let connection = site.connect(&Who::helpless(AuthRecovery::Login)).await;
    let gone = tokio::time::timeout(SOON, connection.wait_until_gone()).await.unwrap();
    assert!(gone.needs_login() && matches!(gone.cause, DisconnectCause::NotAuthorized(_)), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn o15_token_issuer_outage_does_not_end_the_connection() {
    let streams = AtomicU64::new(0);
    let site = Site::start(Era::Handshake, move |asked| match asked.verb.as_str() {
        "GET" => match streams.fetch_add(1, Ordering::SeqCst) {
            0 => Act::Stream(": nothing to say\n\n"),
            1 | 2 => refuse(401),
            _ => Act::Serve,
        },
        _ => Act::Serve,
    });
    let connection = site.connect(&Who::helpless(AuthRecovery::Waiting)).await;
    assert!(poll_until(SOON, || site.tokens("GET", "").len() == 4), "{:?}", site.seen());
    assert!(!connection.is_gone());
    call(&connection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn session_reopen_that_needs_login_ends_the_connection() {
    let calls = AtomicU64::new(0);
    let site = Site::start(Era::Handshake, move |asked| match asked.method.as_str() {
        "tools/call" => {
            calls.fetch_add(1, Ordering::SeqCst);
            refuse(404)
        }
        "initialize" if calls.load(Ordering::SeqCst) > 0 => refuse(401),
        _ => Act::Serve,
    });
    let connection = site.connect(&Who::helpless(AuthRecovery::Login)).await;
    assert!(call(&connection).await.is_err());
    let gone = tokio::time::timeout(SOON, connection.wait_until_gone()).await.unwrap();
    assert!(gone.needs_login(), "{gone:?}");
    let cause = ConnectCause::Gone(gone);
    assert!(cause.needs_login() && !cause.is_retryable());
}

/// A source of headers that counts its runs: `Bearer hush-token-0`, `-1`, … and the same number in `X-Run`.
fn counting_source() -> (HeadersSource, Arc<AtomicU64>) {
    let runs = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&runs);
    let source = HeadersSource::new("counter", move || {
        let run = counter.fetch_add(1, Ordering::SeqCst);
        let authorization = ("Authorization".to_owned(), Secret::new(format!("Bearer {TOKEN}{run}")));
        Ok(vec![authorization, ("X-Run".to_owned(), Secret::new(run.to_string()))])
    });
    (source, runs)
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_command_runs_once_and_again_after_401() {
    let site = Site::start(Era::Stateless, |asked| match asked.token {
        Some(0) if is_call(asked) => refuse(401),
        _ => Act::Serve,
    });
    let (source, runs) = counting_source();
    let mut spec = site.spec();
    spec.headers_source = Some(source);
    let connection = connect_http(&spec, options(&Who::renewing(7))).await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    call(&connection).await.unwrap();
    call(&connection).await.unwrap();
    assert_eq!(site.tokens("POST", "tools/call"), [Some(0), Some(1), Some(1)]);
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    let shown = connection.redactor().redact(&format!("it said {TOKEN}1")).into_owned();
    assert!(!shown.contains(TOKEN), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_command_that_is_always_rejected_runs_twice() {
    let site = Site::start(Era::Stateless, |_| refuse(401));
    let (source, runs) = counting_source();
    let mut spec = site.spec();
    spec.headers_source = Some(source);
    let error = connect_http(&spec, options(&Who::renewing(7))).await.err().unwrap();
    assert!(error.to_string().contains("the server rejects the headers of `headersCommand`"), "{error}");
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_command_runs_again_after_its_renewed_headers_were_rejected() {
    let site = Site::start(Era::Stateless, |asked| match asked.token {
        Some(0 | 1) if is_call(asked) => refuse(401),
        _ => Act::Serve,
    });
    let (source, runs) = counting_source();
    let mut spec = site.spec();
    spec.headers_source = Some(source);
    let connection = connect_http(&spec, options(&Who::renewing(7))).await.unwrap();
    call(&connection).await.unwrap_err();
    call(&connection).await.unwrap();
    assert_eq!(site.tokens("POST", "tools/call"), [Some(0), Some(1), Some(2)]);
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_command_that_fails_or_is_not_approved_sends_nothing() {
    let site = Site::start(Era::Stateless, |_| Act::Serve);
    let fails = HeadersSource::new("fails", || Err("`token` failed (exit status: 3)".to_owned()));
    let reserved = HeadersSource::new("host", || Ok(vec![("Host".to_owned(), Secret::new("evil"))]));
    for (source, reason) in [(fails, "`token` failed (exit status: 3)"), (reserved, "`Host` is set by the connection")]
    {
        let mut spec = site.spec();
        spec.headers_source = Some(source);
        let error = connect_http(&spec, options(&Who::renewing(7))).await.err().unwrap();
        assert!(error.to_string().contains(reason), "{error}");
    }
    let (source, runs) = counting_source();
    let mut spec = site.spec();
    spec.headers_source = Some(source);
    let checks = AtomicU64::new(0);
    // Approved when the connection is opened, and changed when the command is to run.
    spec.launch_check =
        Some(LaunchCheck::new(Fingerprint([0; 32]), move |_| match checks.fetch_add(1, Ordering::SeqCst) {
            0 => Ok(()),
            _ => Err(LaunchRefusal::Changed(vec!["program file: other".to_owned()])),
        }));
    let error = connect_http(&spec, options(&Who::renewing(7))).await.err().unwrap();
    assert!(error.to_string().contains("changed since it was approved"), "{error}");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert!(site.seen().is_empty(), "{:?}", site.seen());
}
