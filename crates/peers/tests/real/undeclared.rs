//! A client that offers nothing, or less than it is asked for: whoever asks all the same is refused, and nothing hangs.

use serde_json::{Value, json};
use wharf_client::{CallError, ClientServices, Direction};

use crate::crew::{Model, Person};
use crate::peer::text;
use crate::quay::{Sdk, Visit, all, each};

const MISSING: i64 = -32021;

/// How a question that must not be asked ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The SDK knows better than to ask, and refuses the call.
    Refused,
    /// The SDK knows better than to ask, and has the tool fail.
    Failed,
    /// It asks; the call is given up.
    Broken,
    /// It asks; our refusal makes the tool fail, or is handed on.
    Told,
}

#[tokio::test]
async fn undeclared_capabilities_are_refused() {
    each(&all(), ClientServices::default(), async |quay| {
        for (tool, method) in QUESTIONS {
            let ended = ask(quay, tool, json!({}), method).await;
            assert_eq!(ended, expected(quay, method), "{}: {tool}", quay.side);
        }
        assert_eq!(quay.call("echo", json!({"text": "ahoy"})).await, "ahoy", "{}", quay.side);
    })
    .await;
}

const QUESTIONS: [(&str, &str); 3] =
    [("ask_form", "elicitation/create"), ("ask_model", "sampling/createMessage"), ("show_roots", "roots/list")];

fn expected(quay: &Visit, method: &str) -> End {
    match (quay.side.sdk, quay.side.is_stateless()) {
        (Sdk::TypeScript2, true) | (Sdk::Python2, _) => End::Refused,
        (Sdk::TypeScript2, false) => End::Failed,
        (Sdk::TypeScript1, _) if method == "elicitation/create" => End::Failed,
        (_, true) => End::Broken,
        (_, false) => End::Told,
    }
}

/// Calls a tool that asks, and finds out what became of the question.
async fn ask(quay: &Visit, tool: &str, arguments: Value, method: &str) -> End {
    let told = || quay.wire.errors(Direction::Sent).len();
    let (before, asked) = (told(), quay.wire.received(method));
    let outcome = quay.try_call(tool, arguments).await;
    let refusals = told() - before;
    assert_eq!(quay.wire.received(method) - asked, refusals, "{}: every request is answered", quay.side);
    match outcome {
        Err(CallError::ErrorResponse(error)) if refusals == 0 => {
            assert_eq!(error.code, MISSING, "{}: {error:?}", quay.side);
            End::Refused
        }
        Ok(result) if refusals == 0 => {
            assert!(result.is_error, "{}: {}", quay.side, text(&result));
            End::Failed
        }
        Err(CallError::Protocol(_)) => End::Broken,
        Ok(result) if result.is_error => End::Told,
        Err(CallError::ErrorResponse(_)) => End::Told,
        outcome => panic!("{}: {tool} gave {outcome:?}", quay.side),
    }
}

#[tokio::test]
async fn url_elicitation_is_refused_by_a_form_only_client() {
    let person = Person::accepts(json!({}));
    each(&all(), ClientServices::default().elicitation(person.clone()), async |quay| {
        let ended = ask(quay, "ask_url", json!({}), "elicitation/create").await;
        let expected = match (quay.side.sdk, quay.side.is_stateless()) {
            (Sdk::TypeScript2, true) => End::Refused,
            (Sdk::TypeScript2, false) | (Sdk::TypeScript1, _) => End::Failed,
            (_, true) => End::Broken,
            (_, false) => End::Told,
        };
        assert_eq!(ended, expected, "{}", quay.side);
        assert!(person.asked().is_empty(), "{}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn sampling_tools_are_refused_by_a_model_without_tools() {
    let model = Model::noon();
    each(&all(), ClientServices::default().sampling(model.clone()), async |quay| {
        let ended = ask(quay, "ask_model", json!({"tools": true}), "sampling/createMessage").await;
        let expected = match (quay.side.sdk, quay.side.is_stateless()) {
            (Sdk::TypeScript2, true) | (Sdk::Python2, _) => End::Refused,
            (Sdk::Rust3, true) => End::Broken,
            (Sdk::Rust3, false) => End::Told,
            _ => End::Failed,
        };
        assert_eq!(ended, expected, "{}", quay.side);
        assert!(model.asked().is_empty(), "{}", quay.side);
    })
    .await;
}
