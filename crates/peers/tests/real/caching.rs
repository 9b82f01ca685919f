//! Results that servers of the stateless era let a client keep: counted by what is asked of them.

use std::sync::Arc;

use serde_json::json;
use wharf_client::{AuthorizationId, ClientServices, ConnectOptions, Event, RequestOptions, ResultCache};
use wharf_wire::Interest;

use crate::quay::{LENIENT, STATELESS, Sdk, Side, Visit, each, visit};

const COUNTER: &str = "note://counter";

#[tokio::test]
async fn list_is_cached_until_the_server_reports_a_change() {
    each(&STATELESS, ClientServices::default(), async |quay| {
        let interest = Interest { tools: true, ..Interest::default() };
        let mut watch = quay.connection.subscribe(interest).await.unwrap();
        let first = quay.connection.list_tools().await.unwrap().items.len();
        let pages = quay.wire.sent("tools/list");
        let second = quay.connection.list_tools().await.unwrap().items.len();
        assert_eq!((second, quay.wire.sent("tools/list")), (first, pages), "{}", quay.side);
        quay.call("grow", json!({})).await;
        assert!(matches!(watch.next().await, Ok(Event::Tools)), "{}", quay.side);
        let third = quay.connection.list_tools().await.unwrap().items.len();
        assert_eq!(third, first + 1, "{}", quay.side);
        assert!(quay.wire.sent("tools/list") > pages, "{}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn interrupted_subscription_invalidates_the_cached_list() {
    each(&STATELESS[1..], ClientServices::default(), async |quay| {
        let interest = Interest { tools: true, ..Interest::default() };
        let mut watch = quay.connection.subscribe(interest).await.unwrap();
        let before = quay.connection.list_tools().await.unwrap().items.len();
        quay.call("end_listen", json!({})).await;
        // Nobody hears of this.
        quay.call("grow", json!({})).await;
        assert!(matches!(watch.next().await, Ok(Event::Resumed)), "{}", quay.side);
        assert_eq!(quay.connection.list_tools().await.unwrap().items.len(), before + 1, "{}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn uncacheable_results_are_requested_each_time() {
    each(&STATELESS, ClientServices::default(), async |quay| {
        for _ in 0..2 {
            quay.connection.list_prompts().await.unwrap();
            quay.connection.list_templates().await.unwrap();
        }
        assert_eq!(quay.wire.sent("prompts/list"), 1, "{}", quay.side);
        assert_eq!(quay.wire.sent("resources/templates/list"), 2, "{}", quay.side);
        // The Rust peer wants its resources read anew.
        let kept = usize::from(quay.side.sdk != Sdk::Rust3);
        read(quay, false).await;
        read(quay, false).await;
        assert_eq!(quay.wire.sent("resources/read"), 2 - kept, "{}", quay.side);
        read(quay, true).await;
        assert_eq!(quay.wire.sent("resources/read"), 3 - kept, "{}", quay.side);
    })
    .await;
}

async fn read(quay: &Visit, fresh: bool) {
    let mut options = RequestOptions::default();
    options.fresh = fresh;
    quay.connection.read_resource(COUNTER, options).await.unwrap();
}

#[tokio::test]
async fn handshake_era_results_are_not_cached() {
    // This one leaves its hints in results of an era that has none.
    each(&LENIENT[2..], ClientServices::default(), async |quay| {
        let pages = async || {
            quay.connection.list_resources().await.unwrap();
            quay.wire.sent("resources/list")
        };
        let first = pages().await;
        assert_eq!(pages().await, 2 * first, "{}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn private_results_are_separate_and_public_ones_shared() {
    for side in STATELESS {
        let cache = Arc::new(ResultCache::default());
        let login = |who: &str| {
            let (cache, who) = (Arc::clone(&cache), AuthorizationId(who.to_owned()));
            move |options: &mut ConnectOptions| (options.cache, options.authorization) = (Some(cache), who)
        };
        visit(side, login("ada"), async |ada| {
            visit(side, login("alan"), async |alan| {
                visit(side, login("ada"), async |again| compare(side, ada, alan, again).await).await;
            })
            .await;
        })
        .await;
    }
}

async fn compare(side: Side, ada: &Visit, alan: &Visit, again: &Visit) {
    for quay in [ada, alan, again] {
        quay.connection.list_prompts().await.unwrap();
        quay.connection.list_resources().await.unwrap();
    }
    let asked = |method: &str| [ada, alan, again].map(|quay| quay.wire.sent(method) > 0);
    assert_eq!(asked("prompts/list"), [true, false, false], "{side}: public");
    assert_eq!(asked("resources/list"), [true, true, false], "{side}: private");
}
