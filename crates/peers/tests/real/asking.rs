//! Servers that ask a person: by a form, by a page, and by a refusal that wants a page visited first.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::sync::watch;
use wharf_client::{CallError, ClientServices, Direction};
use wharf_wire::{Elicitation, ElicitationResponse, FieldKind, UrlRequest};

use crate::crew::{Hasty, Person, Undecided};
use crate::peer::raw;
use crate::quay::{EVERYTHING, OLD, STATELESS, Sdk, Side, all, each, visit};

const DUES: &str = "https://example.org/dues?ship=7";

#[tokio::test]
async fn partial_form_is_completed_with_defaults() {
    let person = Person::accepts(json!({"name": "Argo", "arrival": "2026-11-15", "berth": 7}));
    each(&all(), ClientServices::default().elicitation(person.clone()), async |quay| {
        let seen = quay.call_json("ask_form", json!({})).await;
        assert_eq!(seen, json!({"action": "accept", "content": berth(quay.side)}), "{}", quay.side);
        let [Elicitation::Form(form)] = &person.asked()[..] else { panic!("{}: one form", quay.side) };
        assert_eq!(form.message, "Which ship, and where to?");
        let required: Vec<&str> =
            form.fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
        assert_eq!(required, ["name"]);
        assert_eq!(form.fields.len(), if quay.side.sdk == Sdk::Python2 { 9 } else { 10 });
        let kind = |name: &str| &form.field(name).unwrap().kind;
        assert!(matches!(kind("insured"), FieldKind::Boolean));
        assert!(matches!(kind("tide"), FieldKind::Choice { .. }) && matches!(kind("cargo"), FieldKind::Choices { .. }));
    })
    .await;
}

/// What was typed in, and the defaults of the rest; the Python SDK 1's peer has none for the tide.
fn berth(side: Side) -> Value {
    let mut content = json!({
        "name": "Argo", "arrival": "2026-11-15", "berth": 7, "email": "master@example.org", "draught": 2.5,
        "insured": true, "flag": "nl", "tide": "high", "cargo": ["salt"],
    });
    if side.sdk == Sdk::Python1 {
        content.as_object_mut().unwrap().remove("tide");
    }
    content
}

#[tokio::test]
async fn unanswered_form_is_declined_or_cancelled() {
    let unfit = ElicitationResponse::Accept(Some(raw(&json!({"name": "", "berth": 99}))));
    let cases = [(ElicitationResponse::Decline, "decline"), (ElicitationResponse::Cancel, "cancel"), (unfit, "cancel")];
    let person = in_turn(cases.clone().map(|(answer, _)| answer));
    each(&all(), ClientServices::default().elicitation(person), async |quay| {
        for (answer, action) in &cases {
            let seen = quay.call_json("ask_form", json!({})).await;
            assert_eq!(seen, json!({"action": action}), "{}: {answer:?}", quay.side);
        }
    })
    .await;
}

#[tokio::test]
async fn url_elicitation_response_reaches_the_server() {
    let answers = [(ElicitationResponse::Accept(None), "accept"), (ElicitationResponse::Decline, "decline")];
    let person = in_turn(answers.clone().map(|(answer, _)| answer)).with_pages();
    each(&all(), ClientServices::default().elicitation(person.clone()), async |quay| {
        for (_, action) in &answers {
            assert_eq!(quay.call_json("ask_url", json!({})).await, json!({"action": action}), "{}", quay.side);
        }
        let pages = pages(&person);
        assert_eq!(pages.len(), 2);
        assert_eq!((pages[0].message.as_str(), pages[0].url.as_str()), ("Pay the harbour dues.", DUES));
        // Only the Rust SDK names a page in the stateless era, where the name is gone.
        assert_eq!(pages[0].elicitation_id.is_some(), names_pages(quay.side), "{}", quay.side);
        let told = quay.wire.received("notifications/elicitation/complete");
        assert_eq!(told, usize::from(tells_of_pages(quay.side)), "{}", quay.side);
    })
    .await;
}

/// Gives these answers, one after the other and over again.
fn in_turn<const N: usize>(answers: [ElicitationResponse; N]) -> Person {
    let next = AtomicUsize::new(0);
    Person::new(move |_| answers[next.fetch_add(1, Ordering::Relaxed) % N].clone())
}

fn names_pages(side: Side) -> bool {
    !side.is_stateless() || side.sdk == Sdk::Rust3
}

fn tells_of_pages(side: Side) -> bool {
    !side.is_stateless() && [Sdk::TypeScript1, Sdk::Python2, Sdk::Python1].contains(&side.sdk)
}

fn pages(person: &Person) -> Vec<UrlRequest> {
    let page = |question| match question {
        Elicitation::Url(page) => page,
        Elicitation::Form(form) => panic!("{form:?}"),
    };
    person.asked().into_iter().map(page).collect()
}

#[tokio::test]
async fn url_error_is_retried_after_server_completion() {
    let person = Person::new(|_| ElicitationResponse::Accept(None)).with_pages();
    let services = ClientServices::default().elicitation(person.clone());
    let side = Side { sdk: Sdk::TypeScript1, ..EVERYTHING };
    each(&[side], services, async |quay| {
        assert_eq!(quay.call("need_url", json!({"ship": "Argo"})).await, "Argo has paid.");
        assert_eq!(pages(&person)[0].url, DUES);
        assert_eq!(quay.wire.received("notifications/elicitation/complete"), 1);
        assert_eq!(quay.wire.sent("tools/call"), 2);
    })
    .await;
}

#[tokio::test]
async fn url_error_is_retried_after_user_completion() {
    let person = Person::new(|_| ElicitationResponse::Accept(None));
    let services = ClientServices::default().elicitation(Hasty(person.clone()));
    // This one never tells of the end.
    each(&[Side { sdk: Sdk::Python1, ..EVERYTHING }], services, async |quay| {
        assert_eq!(quay.call("need_url", json!({"ship": "Argo"})).await, "Argo has paid.");
        assert_eq!(pages(&person)[0].url, DUES);
        assert_eq!(quay.wire.sent("tools/call"), 2);
    })
    .await;
}

#[tokio::test]
async fn url_error_remains_if_declined_or_unsupported() {
    for sdk in [Sdk::TypeScript1, Sdk::Python1] {
        let side = Side { sdk, ..EVERYTHING };
        let person = Person::new(|_| ElicitationResponse::Decline).with_pages();
        each(&[side], ClientServices::default().elicitation(person), async |quay| {
            let declined = quay.try_call("need_url", json!({"ship": "Argo"})).await;
            assert!(matches!(declined, Err(CallError::Declined(_))), "{sdk:?}: {declined:?}");
            assert_eq!(quay.wire.sent("tools/call"), 1);
        })
        .await;
        visit(
            side,
            |_| {},
            async |quay| {
                let refused = quay.try_call("need_url", json!({"ship": "Argo"})).await;
                assert!(
                    matches!(&refused, Err(CallError::ErrorResponse(error)) if error.code == -32042),
                    "{sdk:?}: {refused:?}"
                );
                assert_eq!(quay.wire.sent("tools/call"), 1);
            },
        )
        .await;
    }
}

#[tokio::test]
async fn cancelled_call_with_open_question_leaves_server_usable() {
    for side in [OLD[0], OLD[1], STATELESS[2]] {
        let open = watch::Sender::new(0);
        let services = ClientServices::default().elicitation(Undecided(open.clone()));
        each(&[side], services, async |quay| {
            let mut asked = open.subscribe();
            tokio::select! {
                outcome = quay.try_call("ask_form", json!({})) => panic!("{side}: {outcome:?}"),
                () = put(&mut asked) => {}
            }
            assert_eq!(quay.call("echo", json!({"text": "ahoy"})).await, "ahoy", "{side}");
            if side.is_stateless() {
                assert_eq!(*open.borrow(), 0, "{side}: a subscription is still open");
            }
            let answered = quay.wire.errors(Direction::Received).iter().filter(|error| error["code"] == 0).count();
            quay.excused.lock().unwrap().unmatched = answered as u64;
        })
        .await;
        assert_eq!(*open.borrow(), 0, "{side}: nothing is open when the server is gone");
    }
}

/// Waits until a question is put, without keeping hold of the count.
pub async fn put(asked: &mut watch::Receiver<usize>) {
    drop(asked.wait_for(|open| *open == 1).await.unwrap());
}
