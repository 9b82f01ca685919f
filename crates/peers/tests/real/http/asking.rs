//! Servers that ask over HTTP: in rounds in the stateless era, and before it with requests on the stream of the
//! call or on the server's own.

use serde_json::json;
use tokio::sync::watch;
use wharf_client::ClientServices;
use wharf_wire::{Elicitation, ElicitationResponse};

use crate::asking::put;
use crate::crew::{Hold, Model, Person, Undecided};
use crate::peer::raw;
use crate::quay::{each, over_http};

#[tokio::test]
async fn form_is_answered_with_defaults() {
    let person = Person::accepts(json!({"name": "Argo", "arrival": "2026-11-15", "berth": 7}));
    each(&over_http(), ClientServices::default().elicitation(person.clone()), async |quay| {
        let seen = quay.call_json("ask_form", json!({})).await;
        assert_eq!((&seen["action"], &seen["content"]["name"]), (&json!("accept"), &json!("Argo")), "{}", quay.side);
        assert_eq!(seen["content"]["email"], "master@example.org", "{}: the default", quay.side);
        let asked = person.asked();
        assert!(matches!(&asked[..], [Elicitation::Form(form)] if form.fields.len() >= 9), "{}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn two_questions_are_asked_in_sequence() {
    let person = Person::new(|question| {
        let Elicitation::Form(form) = question else { return ElicitationResponse::Cancel };
        let answer = if form.field("name").is_some() { json!({"name": "Ada"}) } else { json!({"port": "Riga"}) };
        ElicitationResponse::Accept(Some(raw(&answer)))
    });
    each(&over_http(), ClientServices::default().elicitation(person.clone()), async |quay| {
        assert_eq!(quay.call("ask_twice", json!({})).await, "Ada sails to Riga.", "{}", quay.side);
        assert_eq!(person.asked().len(), 2, "{}", quay.side);
        // In the stateless era the call is made again with what was answered.
        let calls = if quay.side.is_stateless() { 3 } else { 1 };
        assert_eq!(quay.wire.sent("tools/call"), calls, "{}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn form_sampling_and_roots_are_answered_in_one_call() {
    let (person, model) = (Person::accepts(json!({"name": "Ada"})), Model::noon());
    let services = ClientServices::default().elicitation(person.clone()).sampling(model.clone());
    each(&over_http(), services.roots(Hold::new("file:///tmp/hold")), async |quay| {
        let seen = quay.call("ask_all", json!({})).await;
        for word in ["Ada", "noon", "file:///tmp/hold"] {
            assert!(seen.contains(word), "{}: {word}: {seen}", quay.side);
        }
        assert_eq!((person.asked().len(), model.asked().len()), (1, 1), "{}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn cancelled_call_with_open_question_leaves_server_usable() {
    let open = watch::Sender::new(0);
    each(&over_http(), ClientServices::default().elicitation(Undecided(open.clone())), async |quay| {
        let mut asked = open.subscribe();
        tokio::select! {
            outcome = quay.try_call("ask_form", json!({})) => panic!("{}: {outcome:?}", quay.side),
            () = put(&mut asked) => {}
        }
        assert_eq!(quay.call("echo", json!({"text": "ahoy"})).await, "ahoy", "{}", quay.side);
        // Some answer what was withdrawn.
        quay.excused.lock().unwrap().unmatched = quay.connection.counters().unmatched.min(1);
    })
    .await;
    assert_eq!(*open.borrow(), 0, "nothing is open when the servers are gone");
}
