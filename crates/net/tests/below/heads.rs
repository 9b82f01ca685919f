//! Heads that no client should accept: H29.

use wharf_net::SendError;
use wharf_testkit::transport_faults::{FaultCount, HeadFault, serve_heads};

use crate::memory::bounded;
use crate::{exchange, open, plain};

#[tokio::test(flavor = "multi_thread")]
async fn h29_malformed_head_leaves_outcome_unknown() {
    for fault in [
        HeadFault::LongHeader,
        HeadFault::ManyHeaders,
        HeadFault::Endless,
        HeadFault::TwoLengths,
        HeadFault::LengthAndChunks,
        HeadFault::Garbage,
    ] {
        let server = serve_heads(fault, FaultCount::First(1)).unwrap();
        let net = open().await;
        let error = bounded(exchange(&net, &plain(server.address()))).await.unsent();
        assert!(matches!(error, SendError::Broken(_)) && !error.is_certainly_unsent(), "{fault:?}: {error:?}");
        assert_eq!((server.requests(), server.connections()), (1, 1), "{fault:?} was asked for again");
        let next = exchange(&net, &plain(server.address())).await;
        assert!(next.is_healthy("hello"), "after {fault:?}: {next:?}");
    }
}
