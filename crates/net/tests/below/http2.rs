//! HTTP/2 misused: H30, and H26 as far as HTTP/2 goes. Each within time and memory, and counted.

use std::time::{Duration, Instant};

use wharf_net::SendError;
use wharf_testkit::oracle::poll_until;
use wharf_testkit::transport_faults::{Endpoint, FaultCount, Http2Fault, TestCa, serve_http2};

use crate::encryption::trusting;
use crate::memory::bounded;
use crate::{Outcome, SOON, call, exchange, secure};

struct Bench {
    server: Endpoint,
    net: wharf_net::Net,
    url: String,
}

impl Bench {
    async fn new(fault: Http2Fault, times: FaultCount) -> Bench {
        let authority = TestCa::new();
        let server = serve_http2(&authority, fault, times).unwrap();
        let url = secure(server.address());
        Bench { server, net: trusting(&authority, None).await, url }
    }

    async fn exchange(&self) -> Outcome {
        bounded(exchange(&self.net, &self.url)).await
    }

    /// Gives up after a while, as a caller with a deadline does.
    async fn exchange_within(&self, limit: Duration) -> Option<Outcome> {
        bounded(tokio::time::timeout(limit, exchange(&self.net, &self.url))).await.ok()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_requests_share_one_connection() {
    let bench = Bench::new(Http2Fault::None, FaultCount::Always).await;
    for _ in 0..10 {
        assert!(bench.exchange().await.is_healthy("hello"));
    }
    assert_eq!((bench.server.requests(), bench.server.connections()), (10, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_provably_unprocessed_request_is_retried() {
    let bench = Bench::new(Http2Fault::GoAwayRefusing, FaultCount::First(1)).await;
    assert!(bench.exchange().await.is_healthy("hello"));
    assert_eq!((bench.server.requests(), bench.server.connections()), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_early_goaway_delivers_the_request_once() {
    let bench = Bench::new(Http2Fault::GoAwayFirst, FaultCount::First(1)).await;
    let outcome = bench.exchange().await;
    if let Outcome::Unsent(error) = &outcome {
        // The connection was gone before the request was given to it.
        assert!(error.is_certainly_unsent() && error.is_transient(), "{error:?}");
        assert_eq!(bench.server.requests(), 0);
        assert!(bench.exchange().await.is_healthy("hello"));
    } else {
        assert!(outcome.is_healthy("hello"), "{outcome:?}");
    }
    assert_eq!(bench.server.requests(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_refused_requests_are_retried_a_few_times_at_most() {
    for fault in [Http2Fault::GoAwayFirst, Http2Fault::GoAwayRefusing, Http2Fault::RefusedStream] {
        let bench = Bench::new(fault, FaultCount::Always).await;
        let error = bench.exchange().await.unsent();
        assert!(!error.is_certainly_unsent() || bench.server.requests() == 0, "{fault:?}: {error:?}");
        assert!(bench.server.requests() <= 3, "{fault:?}: {} deliveries, {error}", bench.server.requests());
        assert!(bench.server.connections() <= 4, "{fault:?}: {} connections", bench.server.connections());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_graceful_goaway_loses_no_request() {
    let bench = Bench::new(Http2Fault::GoAwayDraining, FaultCount::Always).await;
    for asked in 1..=5 {
        assert!(bench.exchange().await.is_healthy("hello"), "request {asked}");
        assert_eq!((bench.server.requests(), bench.server.connections()), (asked, asked));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_possibly_processed_request_is_never_retried() {
    for fault in [Http2Fault::GoAwayAbandoning, Http2Fault::ResetStream, Http2Fault::ResetFlood] {
        let bench = Bench::new(fault, FaultCount::Always).await;
        let error = bench.exchange().await.unsent();
        assert!(matches!(error, SendError::Broken(_)) && !error.is_certainly_unsent(), "{fault:?}: {error:?}");
        assert_eq!(bench.server.requests(), 1, "{fault:?}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_floods_end_within_the_time_limit() {
    let limit = Duration::from_secs(2);
    for fault in [
        Http2Fault::ResetFlood,
        Http2Fault::SettingsFlood,
        Http2Fault::PingFlood,
        Http2Fault::ContinuationFlood,
        Http2Fault::EmptyDataFlood,
    ] {
        let bench = Bench::new(fault, FaultCount::First(1)).await;
        let since = Instant::now();
        let outcome = bench.exchange_within(limit).await;
        assert!(since.elapsed() < limit + SOON / 2, "{fault:?} took {:?}", since.elapsed());
        let healthy = outcome.as_ref().is_some_and(|outcome| outcome.is_healthy("hello"));
        assert!(!healthy || fault == Http2Fault::SettingsFlood || fault == Http2Fault::PingFlood, "{fault:?}");
        assert!(bench.server.requests() <= 2, "{fault:?}: {} deliveries", bench.server.requests());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_next_request_succeeds_after_a_flood() {
    for fault in [Http2Fault::ContinuationFlood, Http2Fault::EmptyDataFlood] {
        let bench = Bench::new(fault, FaultCount::First(1)).await;
        bench.exchange_within(Duration::from_secs(2)).await;
        assert!(exchange(&bench.net, &bench.url).await.is_healthy("hello"), "{fault:?} stuck");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_closed_flow_window_does_not_outlast_the_deadline() {
    let bench = Bench::new(Http2Fault::ZeroWindow, FaultCount::Always).await;
    // More than may be sent before the server's settings are known.
    let mut request = call(&bench.url, "hello");
    request.body = vec![b'a'; 1 << 20].into();
    let waiting = tokio::time::timeout(Duration::from_millis(500), bench.net.send(request));
    assert!(bounded(waiting).await.is_err(), "an answer arrived");
    assert_eq!(bench.server.requests(), 0, "the body cannot have been sent");
}

#[tokio::test]
async fn h26_server_without_ping_replies_is_disconnected() {
    let bench = Bench::new(Http2Fault::Silent, FaultCount::First(1)).await;
    let (net, request) = (bench.net.clone(), call(&bench.url, "hello"));
    let asked = tokio::spawn(async move { net.send(request).await.err() });
    while bench.server.requests() == 0 {
        tokio::task::yield_now().await;
    }
    // From here on nothing but time passes.
    tokio::time::pause();
    let since = tokio::time::Instant::now();
    let error = asked.await.unwrap().unwrap();
    assert!(since.elapsed() <= Duration::from_secs(31), "{:?}", since.elapsed());
    assert!(matches!(error, SendError::Broken(_)) && !error.is_certainly_unsent(), "{error:?}");
    assert!(error.to_string().contains("keep-alive timed out"), "{error}");
    tokio::time::resume();
    assert!(poll_until(SOON, || bench.server.requests() == 1), "it was sent again");
    assert!(exchange(&bench.net, &bench.url).await.is_healthy("hello"));
}
