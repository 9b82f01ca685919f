//! Servers being watched over HTTP: in the stateless era by a request that stays open, before it by the
//! server's own stream.

use serde_json::json;
use wharf_client::{ClientServices, Event, RequestOptions};
use wharf_wire::Interest;

use crate::quay::{STATELESS, Sdk, Visit, Way, each, over_http};

const COUNTER: &str = "note://counter";

fn interest() -> Interest {
    Interest { tools: true, uris: vec![COUNTER.to_owned()], ..Interest::default() }
}

#[tokio::test]
async fn list_and_resource_changes_are_reported() {
    each(&over_http(), ClientServices::default(), async |quay| {
        let mut watch = quay.connection.subscribe(interest()).await.unwrap();
        assert_eq!(*watch.confirmed_interest(), interest(), "{}", quay.side);
        let before = counter(quay).await;
        quay.call("grow", json!({})).await;
        assert!(matches!(watch.next().await, Ok(Event::Tools)), "{}", quay.side);
        let tools = quay.connection.list_tools().await.unwrap().items;
        assert!(tools.iter().any(|tool| tool.name == "grown_1"), "{}", quay.side);
        assert_eq!(quay.call("grown_1", json!({})).await, "grown_1", "{}", quay.side);
        quay.call("touch", json!({})).await;
        let event = watch.next().await;
        assert!(matches!(&event, Ok(Event::Resource(uri)) if uri == COUNTER), "{}: {event:?}", quay.side);
        assert_eq!(counter(quay).await, before + 1, "{}", quay.side);
        drop(watch);
        unwatched(quay).await;
    })
    .await;
}

/// What is no longer watched is no longer told.
async fn unwatched(quay: &Visit) {
    if !quay.side.is_stateless() {
        quay.wire.until(|wire| wire.sent("resources/unsubscribe") == 1).await;
    }
    // Whatever was to be said before this has been said when it is answered.
    quay.call("echo", json!({"text": "ahoy"})).await;
    let before = quay.wire.received("notifications/resources/updated");
    quay.call("touch", json!({})).await;
    quay.call("echo", json!({"text": "ahoy"})).await;
    assert_eq!(quay.wire.received("notifications/resources/updated"), before, "{}", quay.side);
    assert_eq!(quay.wire.sent("notifications/cancelled"), 0, "{}: the stream is closed instead", quay.side);
}

async fn counter(quay: &Visit) -> u64 {
    let read = quay.connection.read_resource(COUNTER, RequestOptions::default()).await.unwrap();
    read.contents[0].text.as_ref().unwrap().parse().unwrap()
}

#[tokio::test]
async fn ended_subscription_is_reopened() {
    let sides = STATELESS.into_iter().filter(|side| side.sdk != Sdk::TypeScript2);
    let sides: Vec<_> = sides.map(|side| side.by(Way::Streamable)).collect();
    each(&sides, ClientServices::default(), async |quay| {
        let mut watch = quay.connection.subscribe(interest()).await.unwrap();
        for round in 1..=2 {
            assert_eq!(quay.call("end_listen", json!({})).await, "ended");
            let event = watch.next().await;
            assert!(matches!(event, Ok(Event::Resumed)), "{}: {event:?}", quay.side);
            assert_eq!(quay.wire.sent("subscriptions/listen"), 1 + round, "{}", quay.side);
            quay.call("touch", json!({})).await;
            let event = watch.next().await;
            assert!(matches!(&event, Ok(Event::Resource(uri)) if uri == COUNTER), "{}: {event:?}", quay.side);
        }
    })
    .await;
}
