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
async fn a_healthy_server_is_spoken_to_on_one_connection() {
    let bench = Bench::new(Http2Fault::None, FaultCount::Always).await;
    for _ in 0..10 {
        assert!(bench.exchange().await.is_healthy("hello"));
    }
    assert_eq!((bench.server.requests(), bench.server.connections()), (10, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_what_was_provably_not_looked_at_is_asked_for_again_elsewhere() {
    let bench = Bench::new(Http2Fault::GoAwayRefusing, FaultCount::First(1)).await;
    assert!(bench.exchange().await.is_healthy("hello"));
    assert_eq!((bench.server.requests(), bench.server.connections()), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_a_server_that_is_leaving_when_it_is_met_gets_nothing() {
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
async fn h30_who_always_refuses_is_asked_a_few_times_at_most() {
    for fault in [Http2Fault::GoAwayFirst, Http2Fault::GoAwayRefusing, Http2Fault::RefusedStream] {
        let bench = Bench::new(fault, FaultCount::Always).await;
        let error = bench.exchange().await.unsent();
        assert!(!error.is_certainly_unsent() || bench.server.requests() == 0, "{fault:?}: {error:?}");
        assert!(bench.server.requests() <= 3, "{fault:?}: {} deliveries, {error}", bench.server.requests());
        assert!(bench.server.connections() <= 4, "{fault:?}: {} connections", bench.server.connections());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_a_server_that_leaves_gracefully_loses_nothing() {
    let bench = Bench::new(Http2Fault::GoAwayDraining, FaultCount::Always).await;
    for asked in 1..=5 {
        assert!(bench.exchange().await.is_healthy("hello"), "request {asked}");
        assert_eq!((bench.server.requests(), bench.server.connections()), (asked, asked));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_what_may_have_been_looked_at_is_never_sent_again() {
    for fault in [Http2Fault::GoAwayAbandoning, Http2Fault::ResetStream, Http2Fault::ResetFlood] {
        let bench = Bench::new(fault, FaultCount::Always).await;
        let error = bench.exchange().await.unsent();
        assert!(matches!(error, SendError::Broken(_)) && !error.is_certainly_unsent(), "{fault:?}: {error:?}");
        assert_eq!(bench.server.requests(), 1, "{fault:?}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_floods_end_within_bounds() {
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
async fn h30_a_flood_does_not_outlast_whoever_asked() {
    for fault in [Http2Fault::ContinuationFlood, Http2Fault::EmptyDataFlood] {
        let bench = Bench::new(fault, FaultCount::First(1)).await;
        bench.exchange_within(Duration::from_secs(2)).await;
        assert!(exchange(&bench.net, &bench.url).await.is_healthy("hello"), "{fault:?} stuck");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h30_a_window_that_never_opens_holds_nobody_beyond_a_deadline() {
    let bench = Bench::new(Http2Fault::ZeroWindow, FaultCount::Always).await;
    // More than may be sent before the server's settings are known.
    let mut request = call(&bench.url, "hello");
    request.body = vec![b'a'; 1 << 20].into();
    let waiting = tokio::time::timeout(Duration::from_millis(500), bench.net.send(request));
    assert!(bounded(waiting).await.is_err(), "an answer arrived");
    assert_eq!(bench.server.requests(), 0, "the body cannot have been sent");
}

#[tokio::test]
async fn h26_a_server_that_answers_no_ping_is_given_up() {
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
