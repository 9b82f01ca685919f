//! Calls that take several questions: one after the other, all at once, and without end.

use serde_json::{Value, json};
use wharf_client::{CallError, ClientServices, Direction, RequestOptions};
use wharf_wire::{Content, Elicitation, ElicitationResponse};

use crate::crew::{Hold, Model, Person, message};
use crate::peer::{raw, text};
use crate::quay::{LENIENT, STATELESS, Sdk, Side, all, each};

/// Gives a name with what is hard to carry, and a port.
fn sailor() -> Person {
    Person::new(|question| {
        let Elicitation::Form(form) = question else { return ElicitationResponse::Cancel };
        let words = |field: &str| if field == "port" { "riga" } else { NAME };
        let fields: Value = form.fields.iter().map(|field| (field.name.clone(), json!(words(&field.name)))).collect();
        ElicitationResponse::Accept(Some(raw(&fields)))
    })
}

const NAME: &str = "Argo \"[⚓]\" \\";

#[tokio::test]
async fn two_questions_are_asked_in_sequence() {
    let person = sailor();
    each(&all(), ClientServices::default().elicitation(person.clone()), async |quay| {
        assert_eq!(quay.call("ask_twice", json!({})).await, format!("{NAME} sails to riga."), "{}", quay.side);
        assert_eq!(person.asked().len(), 2, "{}", quay.side);
        let calls = quay.wire.all(Direction::Sent, "tools/call");
        assert_eq!(calls.len(), if quay.side.is_stateless() { 3 } else { 1 }, "{}", quay.side);
        if quay.side.is_stateless() {
            assert!(calls[0].get("requestState").is_none() && calls[2]["requestState"].is_string(), "{}", quay.side);
            let answers = calls[2]["inputResponses"].as_object().unwrap();
            assert_eq!(answers.len(), 1, "{}: only the answers of this round", quay.side);
        }
    })
    .await;
}

#[tokio::test]
async fn three_requests_are_answered_in_one_round() {
    let (model, hold) = (Model::noon(), Hold::new("file:///tmp/hold"));
    let services = ClientServices::default().elicitation(sailor()).sampling(model).roots(hold);
    each(&all(), services, async |quay| {
        let seen = quay.call("ask_all", json!({})).await;
        if quay.side.sdk == Sdk::Python2 {
            assert_eq!(seen, format!("{NAME}, noon, file:///tmp/hold"));
            return;
        }
        let seen: Value = serde_json::from_str(&seen).unwrap();
        assert_eq!(seen["name"], json!({"action": "accept", "content": {"name": NAME}}), "{}", quay.side);
        assert_eq!(seen["model"], message(&json!({"type": "text", "text": "noon"}), "endTurn"), "{}", quay.side);
        assert_eq!(seen["roots"], json!({"roots": [{"uri": "file:///tmp/hold", "name": "hold"}]}), "{}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn endless_input_rounds_are_abandoned_after_eight() {
    let person = sailor();
    let ts2 = [STATELESS[0], LENIENT[0]];
    each(&ts2, ClientServices::default().elicitation(person.clone()), async |quay| {
        let outcome = quay.try_call("ask_forever", json!({})).await;
        match (&outcome, quay.side.is_stateless()) {
            (Err(CallError::TooManyRounds(8)), true) => {}
            // There it is the SDK that gives up.
            (Ok(result), false) => assert!(result.is_error && text(result).contains("8 rounds"), "{}", text(result)),
            _ => panic!("{}: {outcome:?}", quay.side),
        }
        assert_eq!(person.asked().len(), 8, "{}", quay.side);
        assert_eq!(quay.call("echo", json!({"text": "ahoy"})).await, "ahoy");
    })
    .await;
}

#[tokio::test]
async fn deferred_call_is_repeated_with_its_request_state() {
    each(&[rust(STATELESS), rust(LENIENT)], ClientServices::default(), async |quay| {
        assert_eq!(quay.call("shed", json!({})).await, "later");
        let calls = quay.wire.all(Direction::Sent, "tools/call");
        if quay.side.is_stateless() {
            assert_eq!((calls.len(), &calls[1]["requestState"]), (2, &json!("later")));
            assert!(calls[1].get("inputResponses").is_none(), "{}", calls[1]);
        }
    })
    .await;
}

fn rust(sides: [Side; 3]) -> Side {
    sides.into_iter().find(|side| side.sdk == Sdk::Rust3).unwrap()
}

#[tokio::test]
async fn prompts_and_resources_can_request_input() {
    let person = sailor();
    let sides = [STATELESS[0], LENIENT[0], rust(STATELESS)];
    each(&sides, ClientServices::default().elicitation(person.clone()), async |quay| {
        let expanded = quay.connection.get_prompt("introduce", &[], RequestOptions::default()).await.unwrap();
        let Content::Text { text, .. } = &expanded.messages[0].content else { panic!("{expanded:?}") };
        assert_eq!(*text, format!("Please introduce {NAME}."), "{}", quay.side);
        for _ in 0..2 {
            let read = quay.connection.read_resource("note://sealed", RequestOptions::default()).await.unwrap();
            let expected = format!("For the eyes of {NAME}.");
            assert_eq!(read.contents[0].text.as_deref(), Some(&*expected), "{}", quay.side);
        }
        assert_eq!(person.asked().len(), 3, "{}: what came of answers is not kept", quay.side);
    })
    .await;
}

#[tokio::test]
async fn prompt_input_is_refused_in_the_handshake_era() {
    each(&[rust(LENIENT)], ClientServices::default().elicitation(sailor()), async |quay| {
        let refused = quay.connection.get_prompt("introduce", &[], RequestOptions::default()).await;
        assert!(matches!(&refused, Err(CallError::ErrorResponse(error)) if error.code == -32600), "{refused:?}");
        let refused = quay.connection.read_resource("note://sealed", RequestOptions::default()).await;
        assert!(matches!(&refused, Err(CallError::ErrorResponse(error)) if error.code == -32600), "{refused:?}");
    })
    .await;
}
