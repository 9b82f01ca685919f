//! Sessions of the handshake era, and that there are none in the stateless one.

use serde_json::json;
use wharf_client::ClientServices;

use crate::quay::{each, over_http};

/// Each of the other tests checks on leaving that sessions were ended, once each; this one that calls need nothing more.
#[tokio::test]
async fn call_is_exactly_one_request() {
    each(&over_http(), ClientServices::default(), async |quay| {
        // The server's own stream may still be on its way to it.
        quay.call("echo", json!({"text": "ahoy"})).await;
        if !quay.side.is_stateless() {
            quay.web().asked("GET", 1).await;
        }
        let before = (quay.web().requests("POST"), quay.web().requests("GET"));
        for _ in 0..5 {
            quay.call("echo", json!({"text": "ahoy"})).await;
        }
        let after = (quay.web().requests("POST"), quay.web().requests("GET"));
        assert_eq!(after, (before.0 + 5, before.1), "{}", quay.side);
        let streams = usize::from(!quay.side.is_stateless());
        assert_eq!(quay.web().requests("GET"), streams, "{}", quay.side);
        assert_eq!(quay.web().requests("DELETE"), 0, "{}: not before the end", quay.side);
    })
    .await;
}
