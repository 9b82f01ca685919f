//! What is kept, completed and verified.

use serde_json::json;
use wharf_client::RequestOptions;
use wharf_wire::{Reference, Revision};

use super::host::{ALL, open};

#[tokio::test]
async fn fresh_list_is_cached() {
    for revision in ALL {
        let harbour = open(revision).await;
        let first = harbour.connection.list_templates().await.unwrap().items.len();
        let second = harbour.connection.list_templates().await.unwrap().items.len();
        let asked = if revision == Revision::V2026_07_28 { 1 } else { 2 };
        assert_eq!((first, harbour.sent("resources/templates/list")), (second, asked), "{revision}");
        harbour.connection.clear_cache();
        harbour.connection.list_templates().await.unwrap();
        assert_eq!(harbour.sent("resources/templates/list"), asked + 1, "{revision}");
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn change_notification_invalidates_the_cached_list() {
    let harbour = open(Revision::V2026_07_28).await;
    let interest = wharf_wire::Interest { tools: true, ..wharf_wire::Interest::default() };
    let mut subscription = harbour.connection.subscribe(interest).await.unwrap();
    let before = harbour.connection.list_tools().await.unwrap().items.len();
    harbour.call("hire_crane", json!({})).await;
    subscription.next().await.unwrap();
    assert_eq!(harbour.connection.list_tools().await.unwrap().items.len(), before + 1);
    harbour.connection.close().await;
}

#[tokio::test]
async fn results_of_input_rounds_are_not_cached() {
    let harbour = open(Revision::V2026_07_28).await;
    for _ in 0..2 {
        harbour.connection.read_resource("harbour://log", RequestOptions::default()).await.unwrap();
    }
    assert_eq!(harbour.questions().len(), 2);
    harbour.connection.close().await;
}

#[tokio::test]
async fn arguments_are_completed() {
    for revision in ALL {
        let harbour = open(revision).await;
        let template = Reference::Template("demo://dock/{berth}");
        let found = harbour.connection.complete_argument(template, "berth", "north", &[]).await;
        assert!(found.unwrap().values.contains(&"north-1".to_owned()), "{revision}");
        let prompt = Reference::Prompt("review");
        let found = harbour.connection.complete_argument(prompt, "language", "r", &[]).await.unwrap();
        assert!(!found.values.is_empty(), "{revision}");
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn completion_uses_earlier_arguments() {
    for &revision in super::host::ASKING {
        let harbour = open(revision).await;
        let template = Reference::Template("quay://{side}/{no}");
        let known = [("side".to_owned(), "north".to_owned())];
        let found = harbour.connection.complete_argument(template, "no", "", &known).await.unwrap();
        assert!(found.values.contains(&"3".to_owned()), "{revision}: {found:?}");
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn skills_are_listed_and_verified_on_load() {
    let harbour = open(Revision::V2026_07_28).await;
    let listed = harbour.connection.list_skills().await.unwrap();
    assert_eq!((listed.items.len(), listed.withheld.len(), harbour.sent("resources/read")), (2, 0, 0));
    for skill in &listed.items {
        let loaded = harbour.connection.load_skill(skill).await.unwrap();
        assert!(loaded.is_verified() && loaded.text.contains(&skill.name));
    }
    assert_eq!(harbour.sent("resources/read"), 2);
    harbour.connection.close().await;
}

/// Wharf shows no icons: the entry keeps them unread, and no request leaves the process for them.
#[tokio::test]
async fn icons_stay_unread_in_the_raw_entry() {
    for &revision in super::host::LATEST {
        let harbour = open(revision).await;
        let tools = harbour.connection.list_tools().await.unwrap();
        let raw: Vec<_> = tools.items.iter().map(|tool| String::from_utf8_lossy(tool.raw.as_bytes())).collect();
        assert!(raw.iter().any(|entry| entry.contains("https://harbour.example/anchor.png")), "{revision}");
        harbour.connection.close().await;
    }
}
