//! What a server asks: as requests before 2026-07-28, as rounds of a call since.

use serde_json::{Value, json};
use wharf_client::{CallError, RequestOptions};
use wharf_wire::{ElicitationResponse, Era, LogLevel, RawJson, Revision};

use super::host::{ALL, ASKING, LATEST, open, open_silent, open_with, text};

fn accept(content: Value) -> ElicitationResponse {
    ElicitationResponse::Accept(Some(RawJson::from_value(&content).unwrap()))
}

/// What a form that is sent as it came holds: the defaults of its schema.
fn defaults(form: &Value) -> Value {
    let properties = form["requestedSchema"]["properties"].as_object().unwrap();
    properties.iter().filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone()))).collect()
}

#[tokio::test]
async fn form_answer_includes_defaults() {
    for &revision in ASKING {
        let given = json!({ "email": "master@argo.example", "nights": 7, "ship": "Argo" });
        let harbour = open_with(revision, [accept(given.clone())]).await;
        let result = harbour.call("book_berth", json!({})).await;
        let structured: Value = serde_json::from_str(result.structured.unwrap().as_str()).unwrap();
        let mut expected = defaults(&harbour.asked.lock().unwrap()[0].1);
        for (name, value) in given.as_object().unwrap() {
            expected[name] = value.clone();
        }
        assert_eq!(structured, json!({ "action": "accept", "content": expected }), "{revision}");
        assert_eq!(harbour.questions(), ["demo form"]);
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn declined_form_reaches_the_tool() {
    for &revision in ASKING {
        for (answer, word) in [(ElicitationResponse::Decline, "decline"), (ElicitationResponse::Cancel, "cancel")] {
            let harbour = open_with(revision, [answer]).await;
            let result = harbour.call("book_berth", json!({})).await;
            assert!(
                result.raw.as_str().contains(&format!(r#""action":"{word}""#)),
                "{revision}: {}",
                result.raw.as_str()
            );
            harbour.connection.close().await;
        }
    }
}

#[tokio::test]
async fn mismatched_form_content_is_not_sent() {
    for &revision in ASKING {
        let harbour = open_with(revision, [accept(json!({ "no such field": 1 }))]).await;
        let result = harbour.call("book_berth", json!({})).await;
        assert!(result.raw.as_str().contains(r#""action":"cancel""#), "{revision}: {}", result.raw.as_str());
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn page_is_opened_only_with_consent() {
    for &revision in LATEST {
        let harbour = open(revision).await;
        let result = harbour.call("open_harbour_page", json!({})).await;
        assert!(!result.is_error, "{revision}: {}", result.raw.as_str());
        let asked = harbour.asked.lock().unwrap().clone();
        assert_eq!(asked[0].0, "demo page");
        assert!(asked[0].1["url"].as_str().unwrap().starts_with("https://harbour.example/"), "{asked:?}");
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn call_rejected_for_a_page_is_retried_after_the_visit() {
    let harbour = open(Revision::V2025_11_25).await;
    let result = harbour.call("open_harbour_page", json!({ "via": "error" })).await;
    assert!(!result.is_error, "{}", result.raw.as_str());
    assert_eq!((harbour.questions(), harbour.sent("tools/call")), (vec!["demo page".to_owned()], 2));
    harbour.connection.close().await;
    let harbour = open_with(Revision::V2025_11_25, [ElicitationResponse::Decline]).await;
    let arguments = RawJson::parse(r#"{"via":"error"}"#).unwrap();
    let outcome = harbour.connection.call_tool("open_harbour_page", &arguments, RequestOptions::default()).await;
    assert!(matches!(outcome, Err(CallError::Declined(_))), "{outcome:?}");
    harbour.connection.close().await;
}

#[tokio::test]
async fn sampling_request_is_answered_or_declined() {
    for revision in ALL {
        let harbour = open(revision).await;
        let result = harbour.call("ask_model", json!({})).await;
        assert!(text(&result).contains("at noon"), "{revision}: {}", result.raw.as_str());
        let arguments = RawJson::parse(r#"{"question":"please refuse"}"#).unwrap();
        let refused = harbour.connection.call_tool("ask_model", &arguments, RequestOptions::default()).await;
        match revision.era() {
            Era::Handshake => assert!(refused.unwrap().is_error, "{revision}"),
            // There is nobody to tell: the call is not repeated.
            Era::Stateless => assert!(matches!(refused, Err(CallError::Declined(_))), "{refused:?}"),
        }
        assert_eq!(harbour.questions(), ["demo model", "demo model"]);
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn sampling_with_tools_needs_the_capability() {
    for &revision in LATEST {
        let harbour = open(revision).await;
        let result = harbour.call("ask_model", json!({ "tools": true })).await;
        assert!(text(&result).contains("at noon"), "{revision}: {}", result.raw.as_str());
        let asked = harbour.asked.lock().unwrap().clone();
        assert!(asked[0].1["tools"].is_array(), "{revision}: {asked:?}");
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn roots_are_listed() {
    for revision in ALL {
        let harbour = open(revision).await;
        let result = harbour.call("show_roots", json!({})).await;
        assert!(result.raw.as_str().contains("file:///quays/demo"), "{revision}: {}", result.raw.as_str());
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn root_changes_notify_handshake_servers() {
    for revision in ALL {
        let harbour = open(revision).await;
        harbour.connection.notify_roots_changed();
        let told = harbour.sent("notifications/roots/list_changed");
        assert_eq!(told, usize::from(revision.era() == Era::Handshake), "{revision}");
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn logs_are_delivered_from_the_set_level() {
    for revision in ALL {
        let mut harbour = open(revision).await;
        if revision.era() == Era::Handshake {
            harbour.connection.set_log_level(LogLevel::Info).await.unwrap();
        }
        harbour.call("log_something", json!({ "level": "debug", "message": "too quiet" })).await;
        harbour.call("log_something", json!({ "level": "warning", "message": "fog" })).await;
        let (level, data) = harbour.logged.recv().await.unwrap();
        assert_eq!(level, LogLevel::Warning, "{revision}");
        assert!(data.to_string().contains("fog"), "{revision}: {data}");
        assert!(harbour.logged.try_recv().is_err(), "{revision}");
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn several_input_rounds_complete() {
    for &revision in ASKING {
        let harbour = open(revision).await;
        let result = harbour.call("many_questions", json!({ "rounds": 4 })).await;
        assert!(!result.is_error, "{revision}: {}", result.raw.as_str());
        assert!(harbour.questions().len() >= 3, "{revision}: {:?}", harbour.questions());
        harbour.connection.close().await;
    }
}

#[tokio::test]
async fn endless_input_rounds_are_abandoned() {
    let harbour = open(Revision::V2026_07_28).await;
    let outcome = harbour.connection.call_tool("stubborn", &RawJson::empty_object(), RequestOptions::default()).await;
    assert!(matches!(outcome, Err(CallError::TooManyRounds(8))), "{outcome:?}");
    assert_eq!(harbour.sent("tools/call"), 9);
    harbour.connection.close().await;
}

#[tokio::test]
async fn prompts_and_resources_can_request_input() {
    let harbour = open(Revision::V2026_07_28).await;
    harbour.connection.get_prompt("pilot", &[], RequestOptions::default()).await.unwrap();
    harbour.connection.read_resource("harbour://log", RequestOptions::default()).await.unwrap();
    assert_eq!(harbour.questions(), ["demo form", "demo form"]);
    harbour.connection.close().await;
}

#[tokio::test]
async fn undeclared_capabilities_are_not_requested() {
    for revision in ALL {
        let connection = open_silent(revision).await;
        for tool in ["book_berth", "ask_model", "show_roots", "open_harbour_page"] {
            let outcome = connection.call_tool(tool, &RawJson::empty_object(), RequestOptions::default()).await;
            let refused = match &outcome {
                Ok(result) => result.is_error,
                Err(CallError::ErrorResponse(_)) => true,
                Err(_) => false,
            };
            assert!(refused, "{revision} {tool}: {outcome:?}");
        }
        connection.close().await;
    }
}
