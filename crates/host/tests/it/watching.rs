//! Watched resources: told when they change, and over the end of a connection.

use std::time::Duration;

use serde_json::{Value, json};
use wharf::spec::ServerSettings;
use wharf::{Event, Host, ServerState};

use crate::fixture::{open_builder, server, settings};
use crate::library::{Library, call, complaint, data, next, notes, until};

fn updated(event: Event) -> Option<String> {
    if let Event::ResourceUpdated { uri, .. } = event { Some(uri) } else { None }
}

fn lazy() -> ServerSettings {
    let mut lazy = settings();
    lazy.lazy = true;
    lazy.idle_stop = Some(Duration::from_secs(60));
    lazy
}

async fn watching(library: &Library, settings: ServerSettings) -> Host {
    let host = open_builder().local_with(server("library"), settings, library.factory()).start().await.unwrap();
    let subscribed = data(&host, "SubscribeMcpResource", json!({ "server": "library", "uri": "book:one" })).await;
    assert_eq!(subscribed, json!({ "subscribed": true, "subscriptionId": "watch-1" }));
    host
}

#[tokio::test(start_paused = true)]
async fn resource_change_reaches_events_and_agent() {
    let library = Library::new();
    let host = watching(&library, settings()).await;
    assert_eq!(library.watched(), json!(["book:one"]));
    let mut events = host.events();
    library.notify("notifications/resources/updated", json!({ "uri": "book:two" }));
    library.notify("notifications/resources/updated", json!({ "uri": "book:one" }));
    assert_eq!(next(&mut events, updated).await, "book:one");
    assert_eq!(notes(&host), ["library: the resource book:one has changed"]);
    assert_eq!(
        data(&host, "UnsubscribeMcpResource", json!({ "subscriptionId": "watch-1" })).await["unsubscribed"],
        true
    );
    until(|| library.watched() == Value::Null).await;
    library.notify("notifications/resources/updated", json!({ "uri": "book:one" }));
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(notes(&host), Vec::<String>::new());
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn subscription_survives_a_reconnect() {
    let library = Library::new();
    let host = watching(&library, settings()).await;
    assert_eq!(notes(&host), Vec::<String>::new(), "nothing was missed before it was watched");
    for _ in 0..3 {
        let mut events = host.events();
        let before = library.count("subscriptions/listen");
        library.end.notify_one();
        assert_eq!(next(&mut events, updated).await, "book:one");
        assert!(library.count("subscriptions/listen") > before);
        let interrupted = "library: the resource book:one may have changed while the subscription was interrupted";
        assert_eq!(notes(&host), [interrupted]);
        library.notify("notifications/resources/updated", json!({ "uri": "book:one" }));
        assert_eq!(next(&mut events, updated).await, "book:one");
        assert_eq!(notes(&host), ["library: the resource book:one has changed"]);
    }
    host.close().await;
    assert_eq!(notes(&host), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn disconnect_before_confirmation_is_not_a_refusal() {
    let library = Library::new();
    let host = watching(&library, settings()).await;
    let mut events = host.events();
    library.shelves().deaf = true;
    let before = library.count("subscriptions/listen");
    library.end.notify_one();
    next(&mut events, |event| matches!(event, Event::State { state: ServerState::Ready, .. }).then_some(())).await;
    until(|| library.count("subscriptions/listen") > before).await;
    library.shelves().deaf = false;
    library.end.notify_one();
    assert_eq!(next(&mut events, updated).await, "book:one");
    assert_eq!(
        notes(&host),
        ["library: the resource book:one may have changed while the subscription was interrupted"]
    );
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn lost_subscription_support_is_reported() {
    let library = Library::new();
    let host = watching(&library, settings()).await;
    library.shelves().capabilities = json!({ "tools": { "listChanged": true }, "resources": {} });
    let mut events = host.events();
    library.end.notify_one();
    let back = |event| matches!(event, Event::State { state: ServerState::Ready, .. }).then_some(());
    next(&mut events, back).await;
    host.wait_until_settled().await;
    until(|| library.count("subscriptions/listen") == 3).await;
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(notes(&host), ["library: the server no longer reports changes of the resource book:one"]);
    let refused = complaint(&host, "SubscribeMcpResource", json!({ "server": "library", "uri": "book:two" })).await;
    assert!(
        refused.contains("does not support resource subscriptions") && refused.contains("SubscribePolling"),
        "{refused}"
    );
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn lazy_server_stays_up_while_subscribed() {
    let library = Library::new();
    let host = watching(&library, lazy()).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(host.status_of("library").unwrap().state, ServerState::Ready);
    call(&host, "UnsubscribeMcpResource", json!({ "server": "library" })).await.unwrap();
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_eq!(host.status_of("library").unwrap().state, ServerState::Idle);
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn abandoned_subscription_is_removed() {
    let library = Library::new();
    let host = watching(&library, lazy()).await;
    call(&host, "UnsubscribeMcpResource", json!({ "subscriptionId": "watch-1" })).await.unwrap();
    {
        let mut given_up =
            std::pin::pin!(call(&host, "SubscribeMcpResource", json!({ "server": "library", "uri": "book:two" })));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(given_up.as_mut().poll(&mut context).is_pending());
    }
    let none = call(&host, "UnsubscribeMcpResource", json!({ "server": "library" })).await.unwrap().text();
    assert_eq!(none, "no subscription matches; there are no subscriptions\n{\"unsubscribed\":false}");
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_eq!(host.status_of("library").unwrap().state, ServerState::Idle);
    assert_eq!(library.watched(), Value::Null);
    host.close().await;
}
