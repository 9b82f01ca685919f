//! Subscriptions: one interface over `subscriptions/listen` and what came before it.

use serde_json::json;
use wharf_client::{Event, Subscription};
use wharf_wire::{Interest, Revision};

use super::host::{ALL, Harbour, open};

const TIDE: &str = "harbour://tide";

fn everything() -> Interest {
    Interest { tools: true, prompts: true, resources: true, uris: vec![TIDE.to_owned()], tasks: Vec::new() }
}

async fn watch(revision: Revision) -> (Harbour, Subscription) {
    let harbour = open(revision).await;
    let subscription = harbour.connection.subscribe(everything()).await.unwrap();
    assert_eq!(*subscription.confirmed_interest(), everything(), "{revision}");
    (harbour, subscription)
}

async fn name_of_next(subscription: &mut Subscription) -> String {
    match subscription.next().await.unwrap() {
        Event::Tools => "tools".to_owned(),
        Event::Prompts => "prompts".to_owned(),
        Event::Resources => "resources".to_owned(),
        Event::Resource(uri) => uri,
        Event::Resumed => "resumed".to_owned(),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn every_change_is_reported() {
    for revision in ALL {
        let (harbour, mut subscription) = watch(revision).await;
        for (tool, expected) in
            [("hire_crane", "tools"), ("learn_shanty", "prompts"), ("lay_buoy", "resources"), ("raise_tide", TIDE)]
        {
            harbour.call(tool, json!({})).await;
            assert_eq!(name_of_next(&mut subscription).await, expected, "{revision}");
        }
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn repeated_changes_are_coalesced() {
    for revision in ALL {
        let (harbour, mut subscription) = watch(revision).await;
        for _ in 0..50 {
            harbour.call("raise_tide", json!({})).await;
        }
        harbour.call("hire_crane", json!({})).await;
        let heard = [name_of_next(&mut subscription).await, name_of_next(&mut subscription).await];
        assert_eq!(heard, ["tools", TIDE], "{revision}");
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn ended_subscription_is_reopened() {
    for how in ["result", "cancelled", "error"] {
        let (harbour, mut subscription) = watch(Revision::V2026_07_28).await;
        harbour.call("end_subscriptions", json!({ "how": how })).await;
        assert_eq!(name_of_next(&mut subscription).await, "resumed", "{how}");
        harbour.call("raise_tide", json!({})).await;
        assert_eq!(name_of_next(&mut subscription).await, TIDE, "{how}");
        assert_eq!(harbour.sent("subscriptions/listen"), 2, "{how}");
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn subscriptions_receive_only_their_own_events() {
    for revision in ALL {
        let harbour = open(revision).await;
        let tools = Interest { tools: true, ..Interest::default() };
        let tide = Interest { uris: vec![TIDE.to_owned()], ..Interest::default() };
        let mut tools = harbour.connection.subscribe(tools).await.unwrap();
        let mut tide = harbour.connection.subscribe(tide).await.unwrap();
        harbour.call("raise_tide", json!({})).await;
        harbour.call("hire_crane", json!({})).await;
        assert_eq!(name_of_next(&mut tools).await, "tools", "{revision}");
        assert_eq!(name_of_next(&mut tide).await, TIDE, "{revision}");
        assert_eq!(harbour.connection.counters().strays, 0);
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn dropped_subscription_is_ended() {
    for revision in ALL {
        let (harbour, subscription) = watch(revision).await;
        drop(subscription);
        let ending =
            if revision == Revision::V2026_07_28 { "notifications/cancelled" } else { "resources/unsubscribe" };
        assert_eq!(harbour.sent(ending), 1, "{revision}");
        // What still arrives finds nobody, and nothing breaks.
        harbour.call("raise_tide", json!({})).await;
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn subscription_ends_with_its_server() {
    for revision in ALL {
        let (harbour, mut subscription) = watch(revision).await;
        let crash = harbour.connection.clone();
        let crashed = async move {
            crash
                .call_tool("crash", &wharf_wire::RawJson::empty_object(), wharf_client::RequestOptions::default())
                .await
        };
        let (_, ended) = tokio::join!(crashed, subscription.next());
        assert!(ended.is_err_and(|error| error.disconnect_report().is_some()), "{revision}");
        harbour.connection.close().await;
    }
}
