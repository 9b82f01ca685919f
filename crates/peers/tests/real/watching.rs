//! Servers being watched: lists and resources that change, and watches that the server ends.

use serde_json::json;
use wharf_client::{CallError, ClientServices, Event, RequestOptions, Subscription};
use wharf_wire::Interest;

use crate::quay::{LENIENT, OLD, STATELESS, Sdk, Visit, all, each};

const COUNTER: &str = "note://counter";

/// The tools, the counter, and what none of them offers.
fn interest() -> Interest {
    Interest { tools: true, uris: vec![COUNTER.to_owned()], ..Interest::default() }
}

#[tokio::test]
async fn list_and_resource_changes_are_reported() {
    each(&all(), ClientServices::default(), async |quay| {
        let mut watch = quay.connection.subscribe(interest()).await.unwrap();
        assert_eq!(*watch.confirmed_interest(), interest(), "{}", quay.side);
        assert_eq!(counter(quay).await, "0");
        quay.call("grow", json!({})).await;
        assert!(matches!(next(&mut watch).await, Event::Tools), "{}", quay.side);
        let tools = quay.connection.list_tools().await.unwrap();
        assert!(tools.items.iter().any(|tool| tool.name == "grown_1"), "{}", quay.side);
        quay.call("touch", json!({})).await;
        let event = next(&mut watch).await;
        assert!(matches!(&event, Event::Resource(uri) if uri == COUNTER), "{}: {event:?}", quay.side);
        assert_eq!(counter(quay).await, "1", "{}", quay.side);
        drop(watch);
        unwatched(quay).await;
    })
    .await;
}

/// What is no longer watched is no longer told.
async fn unwatched(quay: &Visit) {
    let before = quay.wire.received("notifications/resources/updated");
    quay.call("touch", json!({})).await;
    assert_eq!(quay.wire.received("notifications/resources/updated"), before, "{}", quay.side);
    let (word, other) = ("notifications/cancelled", "resources/unsubscribe");
    let expected = if quay.side.is_stateless() { (1, 0) } else { (0, 1) };
    assert_eq!((quay.wire.sent(word), quay.wire.sent(other)), expected, "{}", quay.side);
}

async fn counter(quay: &Visit) -> String {
    let read = quay.connection.read_resource(COUNTER, RequestOptions::default()).await.unwrap();
    read.contents[0].text.clone().unwrap()
}

async fn next(watch: &mut Subscription) -> Event {
    watch.next().await.unwrap()
}

#[tokio::test]
async fn ended_subscription_is_reopened() {
    let sides: Vec<_> = STATELESS.into_iter().filter(|side| side.sdk != Sdk::TypeScript2).collect();
    each(&sides, ClientServices::default(), async |quay| {
        let mut watch = quay.connection.subscribe(interest()).await.unwrap();
        for round in 1..=2 {
            assert_eq!(quay.call("end_listen", json!({})).await, "ended");
            let event = next(&mut watch).await;
            assert!(matches!(event, Event::Resumed), "{}: {event:?}", quay.side);
            assert_eq!(quay.wire.sent("subscriptions/listen"), 1 + round);
            quay.call("touch", json!({})).await;
            let event = next(&mut watch).await;
            assert!(matches!(&event, Event::Resource(uri) if uri == COUNTER), "{}: {event:?}", quay.side);
            assert_eq!(counter(quay).await, round.to_string(), "{}", quay.side);
        }
    })
    .await;
}

#[tokio::test]
async fn subscription_ends_with_its_server() {
    each(&[STATELESS[0], OLD[0]], ClientServices::default(), async |quay| {
        let mut watch = quay.connection.subscribe(interest()).await.unwrap();
        assert_eq!(quay.call("leave", json!({})).await, "farewell");
        let end = watch.next().await;
        assert!(matches!(&end, Err(error) if error.disconnect_report().is_some()), "{}: {end:?}", quay.side);
        let gone = quay.try_call("echo", json!({"text": "ahoy"})).await;
        assert!(matches!(gone, Err(CallError::RetryableDisconnect(_))), "{}: {gone:?}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn subscriptions_receive_only_their_own_events() {
    each(&[STATELESS[0], STATELESS[2], OLD[0], LENIENT[2]], ClientServices::default(), async |quay| {
        let tools = Interest { tools: true, ..Interest::default() };
        let mut tools = quay.connection.subscribe(tools).await.unwrap();
        let resource = Interest { uris: vec![COUNTER.to_owned()], ..Interest::default() };
        let mut resource = quay.connection.subscribe(resource).await.unwrap();
        quay.call("touch", json!({})).await;
        quay.call("grow", json!({})).await;
        assert!(matches!(next(&mut tools).await, Event::Tools), "{}", quay.side);
        assert!(matches!(next(&mut resource).await, Event::Resource(_)), "{}", quay.side);
    })
    .await;
}
