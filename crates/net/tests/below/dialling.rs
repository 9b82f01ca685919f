//! Names and ports that lead nowhere: H01, H02 and H41.

use std::time::Instant;

use url::Url;
use wharf_net::SendError;
use wharf_testkit::transport_faults::{
    FaultCount, FullBacklog, NO_SUCH_NAME, Refused, UNREACHABLE_URLS, black_hole, reset_after_accept, serve_plain,
};

use crate::{BRIEF, SOON, call, exchange, open, open_hurried, plain};

#[tokio::test(flavor = "multi_thread")]
async fn h01_unresolvable_host_is_named_in_the_error() {
    let error = exchange(&open().await, &format!("http://{NO_SUCH_NAME}/mcp")).await.unsent();
    let SendError::Unresolved { host, .. } = &error else { panic!("{error:?}") };
    assert_eq!(host, NO_SUCH_NAME);
    assert!(error.is_certainly_unsent() && error.is_transient(), "{error:?}");
    assert!(error.to_string().starts_with(&format!("cannot resolve host `{NO_SUCH_NAME}`: ")), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn h01_unreachable_address_family_is_skipped() {
    // The server has no IPv6, which `localhost` often means as well, and first.
    let server = serve_plain().unwrap();
    let url = format!("http://localhost:{}/mcp", server.address().port());
    assert!(exchange(&open().await, &url).await.is_healthy("hello"));
    assert_eq!((server.requests(), server.connections()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn h02_connection_refused_is_reported_immediately() {
    let nobody = Refused::bind().unwrap();
    let since = Instant::now();
    let error = exchange(&open().await, &plain(nobody.address())).await.unsent();
    assert!(since.elapsed() < SOON / 2, "{:?}", since.elapsed());
    assert!(matches!(error, SendError::Refused(_)), "{error:?}");
    assert!(error.is_certainly_unsent() && error.is_transient(), "{error:?}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn h02_unaccepted_connection_times_out() {
    let full = FullBacklog::bind().unwrap();
    let since = Instant::now();
    let error = exchange(&open_hurried().await, &plain(full.address())).await.unsent();
    assert_eq!(error, SendError::Slow(BRIEF));
    assert!((BRIEF..SOON / 2).contains(&since.elapsed()), "{:?}", since.elapsed());
    assert!(error.is_certainly_unsent() && error.is_transient(), "{error:?}");
    assert_eq!(error.to_string(), "connection timed out after 300 ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn h02_connection_reset_is_not_retried() {
    let server = reset_after_accept(FaultCount::First(1)).unwrap();
    let net = open().await;
    let error = exchange(&net, &plain(server.address())).await.unsent();
    // Noticed while dialling, it proves that nothing left. Noticed later it proves nothing.
    assert!(matches!(error, SendError::Refused(_) | SendError::Broken(_)) && error.is_transient(), "{error:?}");
    assert_eq!((server.connections(), server.requests()), (1, 0), "it was tried again");
    assert!(exchange(&net, &plain(server.address())).await.is_healthy("hello"));
    assert_eq!(server.requests(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn h02_silent_server_is_dropped_with_its_caller() {
    let server = black_hole(FaultCount::First(1)).unwrap();
    let net = open_hurried().await;
    let waiting = tokio::time::timeout(2 * BRIEF, net.send(call(&plain(server.address()), "hello"))).await;
    assert!(waiting.is_err(), "an answer arrived");
    assert!(exchange(&net, &plain(server.address())).await.is_healthy("hello"));
    // Were the first connection still held, dropping the server would still end; the second shows that none is shared.
    assert_eq!((server.connections(), server.requests()), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn h41_undialable_url_fails_before_anything_is_sent() {
    let net = open().await;
    for text in UNREACHABLE_URLS {
        // A zone makes it no URL at all; a path to a socket makes it one that cannot be dialled.
        let Ok(url) = Url::parse(text) else { continue };
        let error = exchange(&net, url.as_str()).await.unsent();
        assert!(error.is_certainly_unsent() && !error.is_transient(), "{text}: {error:?}");
        assert!(error.to_string().contains("http+unix"), "{error}");
    }
    assert_eq!(UNREACHABLE_URLS.iter().filter(|text| Url::parse(text).is_ok()).count(), 1);
}
